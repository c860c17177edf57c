/**
 * What a run that drains would work through now, said beforehand: nothing is written. The guards are those of the claim. It takes
 * every command to succeed, but those of which it is told that they fail, and follows the order of keys from there.
 */
import type { Dispatch } from "../core/dispatch.ts";
import { staleHolders } from "./claim.ts";
import { ABANDONED, ALONE, type ClaimTerms, DUE, LASTS, LIVE, OURS, params, ROUTED } from "./guards.ts";
import { type Handle, type Params, statement } from "./statement.ts";

export interface ForecastTerms extends Pick<ClaimTerms, "now" | "fallbackLeaseS" | "kinds" | "circuits" | "alive"> {
  /** Kinds whose commands are known to fail, among `kinds`; and whether all others do. Such a row stays in the way of its key. */
  readonly failing: ReadonlySet<string>;
  readonly othersFail: boolean;
  /** Whether these others have no route at all: the second time they die. */
  readonly othersUnresolvable: boolean;
}

export type Foreseen = Pick<
  Dispatch,
  | "seq"
  | "id"
  | "kind"
  | "deliver_to"
  | "ordering_key"
  | "status"
  | "attempt"
  | "max_attempts"
  | "next_attempt_at"
  | "expires_at"
  | "unresolved"
> & {
  /** Sent, or ended: past its expiry, out of attempts. */
  readonly would: "send" | "expire" | "die";
  /** The reason that its move would have. */
  readonly reason_code: string;
};

/** What keeps rows that are due. */
export interface Kept {
  readonly held: number;
  /** Behind an earlier one of their key, or beside one that runs. */
  readonly behind: number;
  /** Circuits that are open, or that one alone may try. */
  readonly circuit: number;
  /** Their commands run, or may. */
  readonly running: number;
  /** Nothing can send them at the moment, by kind. */
  readonly fault: ReadonlyMap<string, number>;
}

export interface ForecastPage {
  /** In the order of their due times. */
  readonly rows: readonly Foreseen[];
  /** Of this page. */
  readonly kept: Kept;
  /** Where the next page begins; null: this was the last. */
  readonly after: After | null;
}

export interface After {
  readonly at: number;
  readonly seq: number;
}

/** What is known of keys and destinations from the pages before. */
export interface Memory {
  /** The first row of a key that the later ones do not get past; null: there is none. */
  readonly barriers: Map<string, number | null>;
  /** The row that tries a circuit whose cooldown is over, by destination; null: not asked for yet. */
  probes: ReadonlyMap<string, number> | null;
}

/** Keys that are remembered: asking again is only slower. */
const MOST_KEYS = 10_000;

// Beyond the guards of the claim: it ends holds whose time is over before it asks, and a forecast ends nothing.
const HELD = `EXISTS (SELECT 1 FROM main.dispatch_holds h WHERE (h.ends_at IS NULL OR h.ends_at > $now)
  AND (h.deliver_to IS NULL OR h.deliver_to = o.deliver_to) AND (h.kind IS NULL OR h.kind = o.kind)
  AND (h.ordering_key IS NULL OR h.ordering_key = o.ordering_key))`;
/** The claim ends it, whatever is in its way. */
const ENDS = `(${DUE} AND NOT (${LASTS}) AND ${ABANDONED})`;
/** It may be sent but for its key and its circuit. */
const FREE = `(${DUE} AND ${LASTS} AND ${ABANDONED} AND (${ROUTED}) AND NOT ${HELD})`;
const OPEN = `($circuits = 1 AND d.open_until IS NOT NULL)`;
const OTHER = `($kinds IS NULL OR o.kind NOT IN (SELECT k.key FROM json_each($kinds) k))`;
/** Its command is known to fail. */
const FAILS = `(CASE WHEN ${OTHER} THEN $others_fail = 1 ELSE o.kind IN (SELECT value FROM json_each($failing)) END)`;
const DIES = `(${FAILS} AND (o.attempt + 1 >= o.max_attempts OR (${OTHER} AND $others_unresolvable = 1 AND o.unresolved >= 1)))`;
/** The later ones of its key come after it in the same run. */
const PASSES = `(${ENDS} OR (${FREE} AND ${ALONE} AND NOT ${OPEN} AND ((o.ack_required = 0 AND NOT ${FAILS}) OR ${DIES})))`;

/** A forecast under way, page after page. */
export interface Forecast {
  /** Null: there is no more. */
  next(): Promise<ForecastPage | null>;
}

/** What is asked of a store: who is alive is asked of the holders of rows whose lease is over. */
export type ForecastWish = Omit<ForecastTerms, "now" | "alive"> & { readonly isAlive: (holder: string) => boolean };

interface Seams {
  readonly now: () => number;
  readonly read: <T>(body: () => T) => Promise<T>;
}

const PAGE = 500;

export function forecasts(db: Handle, { isAlive, ...wish }: ForecastWish, { now, read }: Seams): Forecast {
  const memory: Memory = { barriers: new Map(), probes: null };
  let terms: ForecastTerms | null = null;
  let after: After | null | undefined;
  return {
    async next() {
      if (after === null) return null;
      const found = await read(() => {
        terms ??= { ...wish, now: now(), alive: staleHolders(db, now()).filter(isAlive) };
        const page = forecast(db, terms, after ?? null, PAGE, memory);
        // Those that run already are no part of any page: their leases end later.
        const running = page.after === null ? page.kept.running + liveClaims(db, terms.now) : page.kept.running;
        return { ...page, kept: { ...page.kept, running } };
      });
      after = found.after;
      return found;
    },
  };
}

/** One page of what is due. Reads only. */
export function forecast(db: Handle, terms: ForecastTerms, after: After | null, limit: number, memory: Memory): ForecastPage {
  const given = asked(terms);
  const found = page(db, given, after, limit);
  if (memory.barriers.size > MOST_KEYS) memory.barriers.clear();
  const rows: Foreseen[] = [];
  const kept = { held: 0, behind: 0, circuit: 0, running: 0, fault: new Map<string, number>() };
  for (const { way, beside, circuit, ...row } of found) {
    const keyed = row.ordering_key;
    if (way === "fault") kept.fault.set(row.kind, (kept.fault.get(row.kind) ?? 0) + 1);
    else if (way === "held" || way === "running") kept[way] += 1;
    else if (way === "expire" || way === "die") rows.push({ ...row, would: way });
    else if (beside === 1 || (keyed !== null && (barrierOf(db, keyed, given, memory) ?? row.seq) < row.seq)) kept.behind += 1;
    else if (circuit === "open" || (circuit === "probe" && probes(db, given, memory).get(row.deliver_to) !== row.seq)) kept.circuit += 1;
    else rows.push({ ...row, would: "send" });
  }
  const last = found.at(-1);
  return { rows, kept, after: last === undefined || found.length < limit ? null : { at: last.next_attempt_at, seq: last.seq } };
}

/** How many claims are live now. */
export function liveClaims(db: Handle, now: number): number {
  const sql = `SELECT count(*) AS n FROM main.dispatch_outbox INDEXED BY dispatch_due WHERE ${OURS} AND status = 'delivering' AND next_attempt_at > $now`;
  return statement<{ n: number }>(db, sql).get({ now })?.n ?? 0;
}

type Found = Omit<Foreseen, "would"> & {
  readonly way: "expire" | "die" | "running" | "fault" | "held" | "free";
  readonly beside: number;
  readonly circuit: "closed" | "open" | "probe";
};

/** Due rows of both statuses in the order of their due times; among equal ones the index goes on by `seq`. */
function page(db: Handle, given: Params, after: After | null, limit: number): Found[] {
  const part = (status: string, where: string): string =>
    `SELECT * FROM (SELECT o.seq, o.next_attempt_at AS at FROM main.dispatch_outbox o INDEXED BY dispatch_due
     WHERE o.${OURS} AND o.status = '${status}' AND ${where} ORDER BY o.next_attempt_at, o.seq LIMIT $limit + 0)`;
  const wheres = after === null ? [DUE] : [`${DUE} AND o.next_attempt_at > $at`, `o.next_attempt_at = $at AND o.seq > $after`];
  const due = ["pending", "delivering"].flatMap((status) => wheres.map((where) => part(status, where)));
  return statement<Found>(
    db,
    `SELECT o.seq, o.id, o.kind, o.deliver_to, o.ordering_key, o.status, o.attempt, o.max_attempts, o.next_attempt_at, o.expires_at, o.unresolved,
       CASE WHEN NOT ${ABANDONED} THEN 'running'
         WHEN NOT (${LASTS}) THEN CASE WHEN o.expires_at <= $now THEN 'expire' ELSE 'die' END
         WHEN NOT (${ROUTED}) THEN 'fault' WHEN ${HELD} THEN 'held' ELSE 'free' END AS way,
       CASE WHEN ${LASTS} THEN 'dispatch.delivering.attempt' WHEN o.expires_at <= $now THEN 'dispatch.expired.deadline'
         WHEN o.status = 'pending' AND o.ack_required = 1 THEN 'dispatch.dead_letter.ack_timeout' ELSE 'dispatch.dead_letter.max_attempts' END AS reason_code,
       NOT ${ALONE} AS beside,
       CASE WHEN NOT ${OPEN} THEN 'closed' WHEN d.open_until > $due_by OR ${LIVE} > 0 THEN 'open' ELSE 'probe' END AS circuit
     FROM (SELECT seq, at FROM (${due.join(" UNION ALL ")}) ORDER BY at, seq LIMIT $limit + 0) due
       CROSS JOIN main.dispatch_outbox o ON o.seq = due.seq LEFT JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to
     ORDER BY due.at, due.seq`,
  ).all({ ...given, limit, ...(after === null ? {} : { at: after.at, after: after.seq }) });
}

function barrierOf(db: Handle, key: string, given: Params, { barriers }: Memory): number | null {
  const known = barriers.get(key);
  if (known !== undefined) return known;
  const seq = firstOfKey(db, key, `NOT coalesce(${PASSES}, 0)`, given);
  barriers.set(key, seq);
  return seq;
}

/** The first row of a key of which this holds. */
function firstOfKey(db: Handle, key: string, where: string, given: Params): number | null {
  const found = statement<{ seq: number }>(
    db,
    `SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_line LEFT JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to
     WHERE o.ordering_key = $key AND o.ordering_key IS NOT NULL AND o.${OURS} AND ${where} ORDER BY o.seq LIMIT 1`,
  ).get({ ...given, key });
  return found?.seq ?? null;
}

/**
 * Of each destination the first row whose turn it is already; where there is none, the first whose turn comes. All at once: no index
 * has the due rows of one destination that wait behind a key, so each of them would read what is due to all.
 */
function probes(db: Handle, given: Params, memory: Memory): ReadonlyMap<string, number> {
  if (memory.probes !== null) return memory.probes;
  const found = new Map<string, number>();
  const decided = new Set<string>();
  const candidates = statement<{ seq: number; to: string; key: string | null }>(
    db,
    `SELECT o.seq, o.deliver_to AS "to", o.ordering_key AS key
     FROM main.dispatch_outbox o INDEXED BY dispatch_due CROSS JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to
     WHERE o.${OURS} AND ${OPEN} AND d.open_until <= $due_by AND ${FREE} AND ${ALONE} ORDER BY o.next_attempt_at, o.seq`,
  ).iterate(given);
  for (const { seq, to, key } of candidates) {
    if (decided.has(to)) continue;
    const first = key === null ? seq : firstOfKey(db, key, `NOT ${ENDS}`, given);
    const comes = key === null || (barrierOf(db, key, given, memory) ?? seq) >= seq;
    if (first === seq) decided.add(to);
    if (first === seq || (comes && !found.has(to))) found.set(to, seq);
  }
  memory.probes = found;
  return found;
}

function asked(terms: ForecastTerms): Params {
  const {
    now = null,
    due_by = null,
    kinds = null,
    fallback = null,
    alive = null,
  } = params({ ...terms, dueBy: terms.now, holder: "", inHand: [] });
  return {
    now,
    due_by,
    kinds,
    fallback,
    alive,
    circuits: terms.circuits ? 1 : 0,
    failing: JSON.stringify([...terms.failing]),
    others_fail: terms.othersFail ? 1 : 0,
    others_unresolvable: terms.othersUnresolvable ? 1 : 0,
  };
}
