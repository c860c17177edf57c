/**
 * The moves of the scheduler and the consumer: claim, settle, acknowledge. Each statement carries its full precondition
 * in WHERE; the rows it changed are the answer. The history row comes from the trigger, in the same statement.
 */
import type { Dispatch, DispatchRef } from "../core/dispatch.ts";
import type { Move } from "../core/lifecycle.ts";
import { byRef } from "./queries.ts";
import { type Handle, statement } from "./statement.ts";

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
  /** Rows whose command this runner still has in hand: never taken from itself. */
  readonly inHand: readonly number[];
}

/**
 * Moves the first due row: claims it, or ends it when it is past its expiry or out of attempts. Ending needs no
 * permission. Run it repeatedly in one transaction until it answers null.
 * @param token a fresh lock token
 */
export function takeNext(db: Handle, terms: ClaimTerms, token: string): Dispatch | null {
  // `status IN (...)` repeats the index's own WHERE to the letter, else the planner does not use it.
  // Rows of kinds that are not claimable are stepped over one by one; fine until there are 100,000 of them.
  const due = (status: "pending" | "delivering"): string => `
    SELECT * FROM (
      SELECT o.seq, o.next_attempt_at FROM main.dispatch_outbox o INDEXED BY dispatch_due
      WHERE o.status IN ('pending', 'delivering') AND o.status = '${status}' AND o.next_attempt_at <= $due_by
        AND o.seq NOT IN (SELECT value FROM json_each($in_hand))
        AND (o.expires_at <= $now OR o.attempt >= o.max_attempts
          OR CASE WHEN EXISTS (SELECT 1 FROM json_each($kinds) k WHERE k.key = o.kind)
               THEN (SELECT k.value FROM json_each($kinds) k WHERE k.key = o.kind) ELSE $fallback END IS NOT NULL)
      ORDER BY o.next_attempt_at, o.seq LIMIT 1)`;
  return statement<Dispatch>(
    db,
    `UPDATE main.dispatch_outbox SET
       status = CASE WHEN expires_at <= $now THEN 'expired' WHEN attempt >= max_attempts THEN 'dead_letter' ELSE 'delivering' END,
       reason_code = CASE
         WHEN expires_at <= $now THEN 'dispatch.expired.deadline'
         WHEN attempt < max_attempts THEN 'dispatch.delivering.attempt'
         WHEN status = 'pending' AND ack_required = 1 THEN 'dispatch.dead_letter.ack_timeout'
         ELSE 'dispatch.dead_letter.max_attempts' END,
       reason_summary = CASE
         WHEN expires_at <= $now THEN 'its time was over' || CASE WHEN status = 'delivering' THEN '; the runner of attempt ' || attempt || ' vanished' ELSE '' END
         WHEN attempt < max_attempts THEN 'attempt ' || (attempt + 1) || ' of ' || max_attempts
           || CASE WHEN status = 'delivering' THEN '; the runner of attempt ' || attempt || ' vanished' ELSE '' END
         WHEN status = 'delivering' THEN 'the runner of attempt ' || attempt || ' of ' || max_attempts || ' vanished'
         WHEN ack_required = 1 THEN 'sent, ' || attempt || ' of ' || max_attempts || ' attempts used, no acknowledgement came'
         ELSE attempt || ' of ' || max_attempts || ' attempts used' END,
       last_error = CASE
         WHEN status = 'delivering' AND attempt >= max_attempts THEN 'the runner vanished during attempt ' || attempt
         ELSE last_error END,
       lock_token = CASE WHEN expires_at <= $now OR attempt >= max_attempts THEN NULL ELSE $token END,
       holder = CASE WHEN expires_at <= $now OR attempt >= max_attempts THEN NULL ELSE $holder END,
       next_attempt_at = CASE WHEN expires_at <= $now OR attempt >= max_attempts THEN $now ELSE $now
         + CASE WHEN EXISTS (SELECT 1 FROM json_each($kinds) k WHERE k.key = kind)
             THEN (SELECT k.value FROM json_each($kinds) k WHERE k.key = kind) ELSE $fallback END END,
       metadata = json_object('attempt', attempt + (attempt < max_attempts AND (expires_at IS NULL OR expires_at > $now))),
       attempt = attempt + (attempt < max_attempts AND (expires_at IS NULL OR expires_at > $now)),
       updated_at = $now, source = 'scheduler', actor = $holder
     WHERE seq = (SELECT seq FROM (${due("delivering")} UNION ALL ${due("pending")}) ORDER BY next_attempt_at, seq LIMIT 1)
     RETURNING *`,
  ).get({
    now: terms.now,
    due_by: Math.min(terms.dueBy, terms.now),
    token,
    holder: terms.holder,
    fallback: terms.fallbackLeaseS,
    kinds: JSON.stringify(Object.fromEntries(terms.kinds)),
    in_hand: JSON.stringify(terms.inHand),
  });
}

/** A claim in hand: which row, which attempt, and the proof. */
export interface Held {
  readonly seq: number;
  readonly attempt: number;
  readonly lockToken: string;
}

/** What a settle came to. `acked`: the consumer was faster, the message has arrived all the same. */
export type Settled = "applied" | "acked" | "lost";

/**
 * Records what an attempt came to, in one statement, guarded by the lock token alone: a lease that is over but that
 * nobody took over still settles. A deadline that was moved by hand meanwhile holds.
 */
export function settle(db: Handle, claim: Held, move: Move, now: number, holder: string): Settled {
  const { report } = move;
  const changed = statement(
    db,
    `UPDATE main.dispatch_outbox SET status = $status, reason_code = $reason, reason_summary = $summary, attempt = $attempt,
       next_attempt_at = CASE WHEN $status = 'pending' AND expires_at < $next THEN expires_at ELSE $next END, last_error = $error, unresolved = $unresolved, lock_token = NULL, holder = NULL,
       updated_at = $now, source = 'scheduler', actor = $holder, metadata = $metadata
     WHERE seq = $seq AND status = 'delivering' AND lock_token = $token`,
  ).run({
    seq: claim.seq,
    token: claim.lockToken,
    status: move.to,
    reason: move.reason,
    summary: move.summary,
    attempt: move.attempt,
    next: move.nextAttemptAt,
    error: move.lastError,
    unresolved: move.unresolved,
    now,
    holder,
    metadata: JSON.stringify(
      report === null
        ? { attempt: claim.attempt }
        : {
            attempt: claim.attempt,
            exit: report.exit,
            signal: report.signal,
            duration_ms: report.durationMs,
            head: report.head,
            tail: report.tail,
          },
    ),
  }).changes;
  if (changed === 1) return "applied";
  const status = statement<{ status: string }>(db, `SELECT status FROM main.dispatch_outbox WHERE seq = $seq`).get({
    seq: claim.seq,
  })?.status;
  return status === "acked" ? "acked" : "lost";
}

/** Every answer that an acknowledgement can get (DESIGN section 9). */
export type AckOutcome = "acked" | "already_acked" | "not_found" | "not_requested" | "mismatch" | "wrong_status" | "lost_race";

/** Records the consumer's acknowledgement (ADR-0059 D5). The right token on a row already acked is no error. */
export function ack(db: Handle, ref: DispatchRef, token: string, now: number): AckOutcome {
  const row = byRef(db, ref);
  if (row === null) return "not_found";
  if (row.ack_token === null) return "not_requested";
  if (!sameToken(row.ack_token, token)) return "mismatch";
  if (row.status === "acked") return "already_acked";
  if (row.status !== "pending" && row.status !== "delivering") return "wrong_status";
  const { changes } = statement(
    db,
    `UPDATE main.dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer', reason_summary = 'acknowledged by the consumer',
       next_attempt_at = $now, last_error = NULL, lock_token = NULL, holder = NULL, updated_at = $now, source = 'consumer', actor = 'ack',
       metadata = json_object('attempt', attempt)
     WHERE seq = $seq AND status = $status`,
  ).run({ seq: row.seq, status: row.status, now });
  return changes === 1 ? "acked" : "lost_race";
}

/** Compares without telling by its duration how much agreed. */
function sameToken(stored: string, given: string): boolean {
  let difference = stored.length ^ given.length;
  for (let at = 0; at < stored.length; at++) difference |= stored.charCodeAt(at) ^ (given.charCodeAt(at) || 0);
  return difference === 0;
}
