/**
 * What follows a claim: settle, renew, acknowledge. (`claim.ts` has the claim itself.) Each statement carries its full precondition
 * in WHERE; the rows it changed are the answer. The history row comes from the trigger, in the same statement.
 */
import type { DispatchRef } from "../core/dispatch.ts";
import type { Move } from "../core/lifecycle.ts";
import { byRef } from "./queries.ts";
import { type Handle, statement } from "./statement.ts";

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

/**
 * Gives a claim in hand another lease, under its token.
 * @returns whether it is still ours
 */
export function renew(db: Handle, claim: Pick<Held, "seq" | "lockToken">, until: number): boolean {
  const { changes } = statement(
    db,
    `UPDATE main.dispatch_outbox SET next_attempt_at = $until WHERE seq = $seq AND status = 'delivering' AND lock_token = $token`,
  ).run({ seq: claim.seq, token: claim.lockToken, until });
  return changes === 1;
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
