/**
 * The claim: who may be sent now, and to whom the next free slot goes. All guards stand in the statement itself and are
 * asked again for every row, so they hold within a batch too. Its cost does not grow with rows that cannot move: those
 * are not `ready`, and their destinations are not due (migration 0002).
 */
import type { Dispatch } from "../core/dispatch.ts";
import { type Handle, type Params, statement } from "./statement.ts";

/** What a claim may take. Times are epoch seconds. */
export interface ClaimTerms {
  readonly now: number;
  /** Only rows due by this instant; `now` or earlier. */
  readonly dueBy: number;
  /** Host, pid and start time of this runner; also the actor in the history. */
  readonly holder: string;
  /** Lease in seconds for kinds that `kinds` does not name; null: they are not claimed (their rows still end). */
  readonly fallbackLeaseS: number | null;
  /** The same by kind. */
  readonly kinds: ReadonlyMap<string, number | null>;
  /** Live claims for one destination, over all runners. */
  readonly perDestination: number;
  /** Whether circuits count. */
  readonly circuits: boolean;
  /** Rows whose command this runner still has in hand: never taken from itself. */
  readonly inHand: readonly number[];
  /** Holders that still live on this host: their rows wait one lease more. */
  readonly alive: readonly string[];
}

const OURS = `status IN ('pending', 'delivering')`;

/** The lease of row `o`, null when its kind is not claimed. */
const LEASE = `CASE WHEN EXISTS (SELECT 1 FROM json_each($kinds) k WHERE k.key = o.kind)
  THEN (SELECT k.value FROM json_each($kinds) k WHERE k.key = o.kind) ELSE $fallback END`;

/** A stale row of a process that still lives on this host gets one more lease: it may only be slow (DESIGN section 8). */
const ABANDONED = `(o.status = 'pending' OR o.holder IS NULL OR o.holder NOT IN (SELECT value FROM json_each($alive))
  OR o.next_attempt_at + coalesce(${LEASE}, 0) <= $now)`;

const NOT_IN_HAND = `o.seq NOT IN (SELECT value FROM json_each($in_hand))`;

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
           WHERE o.${OURS} AND o.expires_at IS NOT NULL AND o.expires_at <= $now AND o.next_attempt_at <= $due_by AND ${NOT_IN_HAND} AND ${ABANDONED}
           ORDER BY o.expires_at LIMIT 1)
         UNION ALL
         SELECT seq FROM (
           SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_spent
           WHERE o.${OURS} AND o.attempt >= o.max_attempts AND o.next_attempt_at <= $due_by AND ${NOT_IN_HAND} AND ${ABANDONED}
           ORDER BY o.next_attempt_at LIMIT 1))
       LIMIT 1)
     RETURNING *`,
  ).get(params(terms));
}

/**
 * Claims one row: of the due destination with the fewest live claims, its first. Run it until it answers null.
 * @param token a fresh lock token
 */
export function claimNext(db: Handle, terms: ClaimTerms, token: string): Dispatch | null {
  return statement<Dispatch>(
    db,
    `UPDATE main.dispatch_outbox AS o SET
       status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = attempt + 1, lock_token = $token, holder = $holder,
       reason_summary = 'attempt ' || (attempt + 1) || ' of ' || max_attempts
         || CASE WHEN status = 'delivering' THEN '; the runner of attempt ' || attempt || ' vanished' ELSE '' END,
       next_attempt_at = $now + ${LEASE}, metadata = json_object('attempt', attempt + 1), updated_at = $now, source = 'scheduler', actor = $holder
     WHERE seq = coalesce(${QUIET}, ${BUSY})
     RETURNING *`,
  ).get({ ...params(terms), token, per_destination: terms.perDestination, circuits: terms.circuits ? 1 : 0 });
}

/** The first row that may start for destination `d`. */
const FIRST = `(SELECT o.seq FROM main.dispatch_outbox o INDEXED BY dispatch_ready
  WHERE o.deliver_to = d.deliver_to AND o.${OURS} AND o.ready = 1 AND o.next_attempt_at <= $due_by
    AND o.attempt < o.max_attempts AND (o.expires_at IS NULL OR o.expires_at > $now)
    AND (SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)
    AND NOT EXISTS (SELECT 1 FROM main.dispatch_outbox p INDEXED BY dispatch_key_flight
      WHERE p.ordering_key = o.ordering_key AND p.status = 'delivering' AND p.ordering_key IS NOT NULL AND p.next_attempt_at > $now AND p.seq <> o.seq)
    AND ${LEASE} IS NOT NULL AND ${NOT_IN_HAND} AND ${ABANDONED}
  ORDER BY o.next_attempt_at, o.seq LIMIT 1)`;

/**
 * The due destination that has waited longest among those with no live claim. The walk passes over no more destinations
 * than have one, which runners and their concurrency bound.
 */
const QUIET = `(SELECT first FROM (
    SELECT ${FIRST} AS first, d.wake_at FROM main.dispatch_destinations d INDEXED BY dispatch_wake
    WHERE d.wake_at IS NOT NULL AND d.wake_at <= $due_by
      AND NOT EXISTS (SELECT 1 FROM main.dispatch_outbox f INDEXED BY dispatch_flight
        WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now)
    ORDER BY d.wake_at)
  WHERE first IS NOT NULL LIMIT 1)`;

/** Else the one with the fewest that has room: found from the claims in flight, so again bounded by them. */
const BUSY = `(SELECT first FROM (
    SELECT ${FIRST} AS first, d.wake_at, f.live FROM (
      SELECT deliver_to, count(*) AS live FROM main.dispatch_outbox INDEXED BY dispatch_flight
      WHERE status = 'delivering' AND next_attempt_at > $now GROUP BY deliver_to) f
    CROSS JOIN main.dispatch_destinations d ON d.deliver_to = f.deliver_to
    WHERE d.wake_at <= $due_by AND f.live < CASE WHEN d.open_until IS NULL OR $circuits = 0 THEN $per_destination ELSE 1 END
    ORDER BY f.live, d.wake_at)
  WHERE first IS NOT NULL LIMIT 1)`;

/** Who holds rows whose lease is over: the caller knows which of these processes still live. */
export function staleHolders(db: Handle, now: number): string[] {
  return statement<{ holder: string }>(
    db,
    `SELECT DISTINCT holder FROM main.dispatch_outbox INDEXED BY dispatch_flight WHERE status = 'delivering' AND next_attempt_at <= $now AND holder IS NOT NULL`,
  )
    .all({ now })
    .map((row) => row.holder);
}

function params(terms: ClaimTerms): Params {
  return {
    now: terms.now,
    due_by: Math.min(terms.dueBy, terms.now),
    holder: terms.holder,
    fallback: terms.fallbackLeaseS,
    kinds: JSON.stringify(Object.fromEntries(terms.kinds)),
    in_hand: JSON.stringify(terms.inHand),
    alive: JSON.stringify(terms.alive),
  };
}
