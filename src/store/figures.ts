/**
 * How much waits and for how long, what came of the rest, what is stopped: from the counters that triggers keep (migration 0003) and
 * from the ends of indexes, so that reading costs the same whatever is in the tables.
 */
import { OutboxError } from "../core/errors.ts";
import { shortReason, STATUSES, type Status } from "../core/lifecycle.ts";
import { notWhole } from "./unfit.ts";
import { type Handle, statement } from "./statement.ts";

export interface Figures {
  /** Dispatches that have not come to an end: pending and delivering. */
  readonly depth: number;
  /** How long the dispatch that is due longest has been due, in seconds; 0 when none is. */
  readonly oldest_due_age: number;
  /** How many there are of each status. */
  readonly status: Readonly<Record<Status, number>>;
  /** Circuits that are open, those past their cooldown included. */
  readonly open_circuits: number;
  /** Holds of operators that have not ended. */
  readonly holds: number;
  /** How many dead letters there are now, by the last word of the reason; reasons of which there are none are left out. */
  readonly dead_letters: Readonly<Record<string, number>>;
  /** How late claims were. */
  readonly lag: Lag;
  /**
   * Attempts that have ended since the counters were made, in the order of kind and result. `result` is the last word of the reason
   * that ended it, or `lost` where its runner vanished. All kinds but a hundred stand together under an empty kind.
   */
  readonly attempts: readonly { readonly kind: string; readonly result: string; readonly count: number }[];
  /** Dead letters since the counters were made, also those that were purged, swept or put back. Kinds as in `attempts`. */
  readonly dead_letters_total: readonly { readonly kind: string; readonly reason: string; readonly count: number }[];
}

/** How long after it was due, or after the lease that was taken over had ended, each claim was made; in seconds. */
export interface Lag {
  /** Claims since the counters were made. */
  readonly count: number;
  readonly sum: number;
  /** How many of them were at most `le` seconds late, in rising order of `le`. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** The columns of `dispatch_figures` that count the claims which were at most so many seconds late. */
const LAG_COLUMNS = {
  lag_100ms: 0.1,
  lag_500ms: 0.5,
  lag_1s: 1,
  lag_5s: 5,
  lag_15s: 15,
  lag_1m: 60,
  lag_5m: 300,
  lag_15m: 900,
  lag_1h: 3_600,
  lag_6h: 21_600,
  lag_1d: 86_400,
} as const;
type LagColumn = keyof typeof LAG_COLUMNS;

type Counts = Readonly<Record<Status | LagColumn | "open_circuits" | "claims" | "lag_sum_s", number>>;

/** @param now epoch seconds */
export function figures(db: Handle, now: number): Figures {
  const all = counts(db);
  const counters = statement<{ name: "attempts" | "dead_letters" | "dead"; kind: string; reason: string; n: number }>(
    db,
    `SELECT name, kind, reason, n FROM main.dispatch_counters WHERE n <> 0 ORDER BY kind, name, reason`,
  )
    .all({})
    .map(({ reason, n, ...counter }) => ({ ...counter, reason: shortReason(reason), count: n }));
  const of = (name: (typeof counters)[number]["name"]): typeof counters => counters.filter((counter) => counter.name === name);
  return {
    depth: all.pending + all.delivering,
    oldest_due_age: oldestDueAge(db, now),
    status: Object.fromEntries(STATUSES.map((status) => [status, all[status]])) as Record<Status, number>,
    open_circuits: all.open_circuits,
    holds: standingHolds(db, now),
    dead_letters: Object.fromEntries(of("dead").map(({ reason, count }) => [reason, count])),
    lag: {
      count: all.claims,
      sum: all.lag_sum_s,
      buckets: (Object.entries(LAG_COLUMNS) as [LagColumn, number][]).map(([column, le]) => ({ le, count: all[column] })),
    },
    attempts: of("attempts").map(({ kind, reason, count }) => ({ kind, result: reason, count })),
    dead_letters_total: of("dead_letters").map(({ kind, reason, count }) => ({ kind, reason, count })),
  };
}

/** How many dispatches have not come to their end, those under a lease included. */
export function countPending(db: Handle): number {
  const { pending, delivering } = counts(db);
  return pending + delivering;
}

function counts(db: Handle): Counts {
  const row = statement<Counts>(
    db,
    `SELECT pending, delivering, delivered, acked, dead_letter, expired, open_circuits, claims, lag_sum_s, lag_100ms, lag_500ms, lag_1s, lag_5s,
       lag_15s, lag_1m, lag_5m, lag_15m, lag_1h, lag_6h, lag_1d
     FROM main.dispatch_figures WHERE one = 1`,
  ).get({});
  if (row !== null) return row;
  const [kind, what, hint] = notWhole("dispatch_figures holds no row");
  throw new OutboxError(kind, `database ${db.filename}${what}`, hint);
}

/** A claim whose lease is over is due from the end of its lease on. */
function oldestDueAge(db: Handle, now: number): number {
  // Each half is the first entry of the index; over both statuses at once it would read every due row.
  const first = (of: "pending" | "delivering"): string =>
    `SELECT min(next_attempt_at) AS at FROM main.dispatch_outbox INDEXED BY dispatch_due
     WHERE status IN ('pending', 'delivering') AND status = '${of}' AND next_attempt_at <= $now`;
  const oldest = statement<{ at: number | null }>(
    db,
    `SELECT min(at) AS at FROM (${first("pending")} UNION ALL ${first("delivering")})`,
  ).get({ now });
  return oldest?.at == null ? 0 : now - oldest.at;
}

function standingHolds(db: Handle, now: number): number {
  return (
    statement<{ n: number }>(db, `SELECT count(*) AS n FROM main.dispatch_holds WHERE ends_at IS NULL OR ends_at > $now`).get({ now })?.n ??
    0
  );
}
