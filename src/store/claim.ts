/**
 * The claim: who may be sent now, and to whom the next free slot goes. All guards stand in the statement itself and are
 * asked again for every row, so they hold within a batch too. Its cost does not grow with rows that cannot move: those
 * are not `ready`, and their destinations are not due (migration 0002).
 */
import type { Dispatch } from "../core/dispatch.ts";
import { COLUMNS } from "./columns.ts";
import {
  ABANDONED,
  ALONE,
  type ClaimTerms,
  DUE,
  gates,
  ITS_TURN,
  LASTS,
  LEASE,
  LET_THROUGH,
  LIVE,
  NOT_IN_HAND,
  OURS,
  params,
  ROOM,
  ROUTED,
} from "./guards.ts";
import { type Handle, statement } from "./statement.ts";

export type { ClaimTerms } from "./guards.ts";

/**
 * Ends one due row that is past its expiry or out of attempts. That needs no permission: also held rows, rows behind a
 * key and rows of a full or failing destination end. Run it until it answers null.
 */
export function endNext(db: Handle, terms: ClaimTerms): Dispatch | null {
  return statement<Dispatch>(
    db,
    `UPDATE main.dispatch_outbox SET
       status = CASE WHEN expires_at <= $now THEN 'expired' ELSE 'dead_letter' END,
       reason_code = CASE
         WHEN expires_at <= $now THEN 'dispatch.expired.deadline'
         WHEN status = 'pending' AND ack_required = 1 THEN 'dispatch.dead_letter.ack_timeout'
         ELSE 'dispatch.dead_letter.max_attempts' END,
       reason_summary = CASE
         WHEN expires_at <= $now THEN 'its time was over' || CASE WHEN status = 'delivering' THEN '; the runner of attempt ' || attempt || ' vanished' ELSE '' END
         WHEN status = 'delivering' THEN 'the runner of attempt ' || attempt || ' of ' || max_attempts || ' vanished'
         WHEN ack_required = 1 THEN 'sent, ' || attempt || ' of ' || max_attempts || ' attempts used, no acknowledgement came'
         ELSE attempt || ' of ' || max_attempts || ' attempts used' END,
       last_error = CASE WHEN status = 'delivering' AND (expires_at IS NULL OR expires_at > $now) THEN 'the runner vanished during attempt ' || attempt ELSE last_error END,
       lock_token = NULL, holder = NULL, next_attempt_at = $now, updated_at = $now, source = 'scheduler', actor = $holder,
       metadata = json_object('attempt', attempt)
     WHERE seq = (
       SELECT seq FROM (
         SELECT seq FROM (
           SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_expiry
           WHERE o.${OURS} AND o.expires_at IS NOT NULL AND o.expires_at <= $now AND ${DUE} AND ${NOT_IN_HAND} AND ${ABANDONED}
           ORDER BY o.expires_at LIMIT 1)
         UNION ALL
         SELECT seq FROM (
           SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_spent
           WHERE o.${OURS} AND o.attempt >= o.max_attempts AND ${DUE} AND ${NOT_IN_HAND} AND ${ABANDONED}
           ORDER BY o.next_attempt_at LIMIT 1))
       LIMIT 1)
     RETURNING ${COLUMNS}`,
  ).get(params(terms));
}

/** The move of a claim; what follows it says of which row. */
const CLAIM = `UPDATE main.dispatch_outbox AS o SET
  status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = attempt + 1, lock_token = $token, holder = $holder,
  reason_summary = 'attempt ' || (attempt + 1) || ' of ' || max_attempts
    || CASE WHEN status = 'delivering' THEN '; the runner of attempt ' || attempt || ' vanished' ELSE '' END,
  next_attempt_at = $now + ${LEASE}, metadata = json_object('attempt', attempt + 1), updated_at = $now, source = 'scheduler', actor = $holder`;

/**
 * Claims one row: of the due destination with the fewest live claims, its first. Run it until it answers null.
 *
 * The walk goes by `flight` and then by who has waited longest, one level after the other: destinations that are full stand
 * behind all that are not, so nobody pays for them. It stops at the first that passes; CROSS JOIN keeps SQLite from another order.
 * A destination whose first row has come to its end waits for `endNext`: looking further would read all that ended with it.
 * @param token a fresh lock token
 */
export function claimNext(db: Handle, terms: ClaimTerms, token: string): Dispatch | null {
  return statement<Dispatch>(db, NEXT).get({ ...params(terms), ...gates(terms), token });
}

/** The first due row of destination `d` that may go, but for its end. */
const FIRST = `(SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_ready
  WHERE o.deliver_to = d.deliver_to AND o.${OURS} AND o.ready = 1 AND ${DUE}
    AND ${ROUTED} AND ${ITS_TURN} AND ${ALONE} AND ${NOT_IN_HAND} AND ${ABANDONED}
  ORDER BY o.next_attempt_at, o.seq LIMIT 1)`;

const NEXT = `${CLAIM}
  WHERE seq = (
    WITH RECURSIVE level (n) AS (
      SELECT min(flight) FROM main.dispatch_destinations INDEXED BY dispatch_wake
      UNION ALL
      SELECT (SELECT min(d.flight) FROM main.dispatch_destinations d INDEXED BY dispatch_wake WHERE d.flight > n) FROM level WHERE n IS NOT NULL)
    SELECT o.seq FROM level CROSS JOIN main.dispatch_destinations d INDEXED BY dispatch_wake CROSS JOIN main.dispatch_outbox o
    WHERE d.flight = level.n AND d.wake_at <= $due_by AND ${ROOM} AND o.seq = ${FIRST} AND ${LASTS}
    LIMIT 1)
  RETURNING ${COLUMNS}`;

/** Claims exactly this row, by the same guards. @returns null when one of them is in its way */
export function claimThis(db: Handle, seq: number, terms: ClaimTerms, token: string): Dispatch | null {
  return statement<Dispatch>(
    db,
    `${CLAIM}
     WHERE seq = (
       SELECT o.seq FROM main.dispatch_outbox o CROSS JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to
       WHERE o.seq = $seq AND o.${OURS} AND ${DUE} AND ${LASTS} AND ${ROUTED} AND ${ITS_TURN} AND ${ALONE} AND ${NOT_IN_HAND} AND ${ABANDONED}
         AND ${LET_THROUGH} AND ${ROOM})
     RETURNING ${COLUMNS}`,
  ).get({ ...params(terms), ...gates(terms), seq, token });
}

/** What keeps a row from being claimed. */
export type Refusal = "not due" | "expired" | "no route" | "held" | "behind its key" | "circuit open" | "destination full" | "taken";

/** Why `claimThis` refuses a row. */
export function refusalOf(db: Handle, seq: number, terms: ClaimTerms): Refusal {
  const { now = null, due_by = null, kinds = null, fallback = null } = params(terms);
  const found = statement<{ why: Refusal }>(
    db,
    `SELECT CASE
       WHEN NOT (${LASTS}) THEN 'expired'
       WHEN NOT (${DUE}) THEN 'not due'
       WHEN (SELECT t.held_by FROM main.dispatch_turn t WHERE t.seq = o.seq) IS NOT NULL THEN 'held'
       WHEN NOT (${ITS_TURN} AND ${ALONE}) THEN 'behind its key'
       WHEN NOT (${LET_THROUGH}) THEN 'circuit open'
       WHEN NOT (${ROOM}) THEN CASE WHEN d.open_until IS NULL OR $circuits = 0 THEN 'destination full' ELSE 'circuit open' END
       WHEN NOT (${ROUTED}) THEN 'no route'
       ELSE 'taken' END AS why
     FROM main.dispatch_outbox o CROSS JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to WHERE o.seq = $seq`,
  ).get({ now, due_by, kinds, fallback, ...gates(terms), seq });
  return found?.why ?? "taken";
}

/**
 * Takes leases that ran out off the claims in flight of their destinations, so that dead runners' rows cost nobody a slot. Where
 * nothing changes nothing is written: every commit wakes the other runners, whose next claim would wake this one.
 */
export function recount(db: Handle, now: number): void {
  statement(
    db,
    `UPDATE main.dispatch_destinations AS d SET flight = ${LIVE}
     WHERE deliver_to IN (SELECT s.deliver_to FROM main.dispatch_outbox s INDEXED BY dispatch_due
       WHERE s.${OURS} AND s.status = 'delivering' AND s.next_attempt_at <= $now) AND flight <> ${LIVE}`,
  ).run({ now });
}

/** Who holds rows whose lease is over by then: the caller knows which of these processes still live. */
export function staleHolders(db: Handle, by: number): string[] {
  return statement<{ holder: string }>(
    db,
    `SELECT DISTINCT s.holder FROM main.dispatch_outbox s INDEXED BY dispatch_due
     WHERE s.${OURS} AND s.status = 'delivering' AND s.next_attempt_at <= $by AND s.holder IS NOT NULL`,
  )
    .all({ by })
    .map((row) => row.holder);
}

/** When the first stale row of a living holder may be taken after `after`, epoch seconds: a lease after its lease. Null: there is none. */
export function patienceEnds(
  db: Handle,
  { after, ...terms }: Pick<ClaimTerms, "now" | "alive" | "kinds" | "fallbackLeaseS"> & { readonly after: number },
): number | null {
  const { now = null, kinds = null, fallback = null, alive = null } = params({ ...terms, dueBy: terms.now, holder: "", inHand: [] });
  return (
    statement<{ at: number | null }>(
      db,
      `SELECT min(at) AS at FROM (
         SELECT o.next_attempt_at + coalesce(${LEASE}, 0) AS at FROM main.dispatch_outbox o INDEXED BY dispatch_due
         WHERE o.${OURS} AND o.status = 'delivering' AND o.next_attempt_at <= $now AND o.holder IN (SELECT value FROM json_each($alive)))
       WHERE at > $after`,
    ).get({ now, kinds, fallback, alive, after })?.at ?? null
  );
}
