/** How much waits, how long it has waited, and how it is spread over the statuses. */
import { STATUSES, type Status } from "../core/lifecycle.ts";
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
}

export function figures(db: Handle, now: number): Figures {
  const counted = statement<{ status: Status; n: number }>(
    db,
    `SELECT status, count(*) AS n FROM main.dispatch_outbox GROUP BY status`,
  ).all({});
  const status = Object.fromEntries(STATUSES.map((name) => [name, counted.find((row) => row.status === name)?.n ?? 0])) as Record<
    Status,
    number
  >;
  // Each half is the first entry of the index; over both statuses at once it would read every due row.
  const first = (of: "pending" | "delivering"): string =>
    `SELECT min(next_attempt_at) AS at FROM main.dispatch_outbox INDEXED BY dispatch_due
     WHERE status IN ('pending', 'delivering') AND status = '${of}' AND next_attempt_at <= $now`;
  const oldest = statement<{ at: number | null }>(
    db,
    `SELECT min(at) AS at FROM (${first("pending")} UNION ALL ${first("delivering")})`,
  ).get({ now });
  const gates = statement<{ open_circuits: number; holds: number }>(
    db,
    `SELECT (SELECT count(*) FROM main.dispatch_destinations INDEXED BY dispatch_open WHERE open_until IS NOT NULL) AS open_circuits,
       (SELECT count(*) FROM main.dispatch_holds WHERE ends_at IS NULL OR ends_at > $now) AS holds`,
  ).get({ now });
  return {
    depth: status.pending + status.delivering,
    oldest_due_age: oldest?.at == null ? 0 : now - oldest.at,
    status,
    open_circuits: gates?.open_circuits ?? 0,
    holds: gates?.holds ?? 0,
  };
}
