/** What an operator does to one dispatch: retry, cancel, purge. Each writes one audit row in the same transaction. */
import type { Dispatch, DispatchRef } from "../core/dispatch.ts";
import { byRef } from "./queries.ts";
import { type Handle, statement } from "./statement.ts";

export type OperatorOutcome =
  | { readonly outcome: "changed"; readonly row: Dispatch }
  | { readonly outcome: "not_found" }
  /** Not in a status from which this can be done. */
  | { readonly outcome: "wrong_status"; readonly row: Dispatch }
  /** Its command runs: the lease is not over. */
  | { readonly outcome: "live"; readonly row: Dispatch }
  /** Its expiry has passed and no new one was given. */
  | { readonly outcome: "past_expiry"; readonly row: Dispatch }
  /** It would be due only at its expiry or later. */
  | { readonly outcome: "expires_first"; readonly row: Dispatch };

export interface Operation {
  /** Epoch seconds. */
  readonly now: number;
  /** Who did it, for history and audit. */
  readonly actor: string;
  /** Answer what would happen, change nothing. */
  readonly dryRun?: boolean;
}

export interface RetryTerms extends Operation {
  /** When it is due again, epoch seconds; `now` unless told. */
  readonly dueAt?: number;
  /** The new expiry, epoch seconds; null or absent keeps the old one. */
  readonly expiresAt?: number | null;
}

/** What an operator looks at before anything is changed. */
export type Operable = Pick<Dispatch, "seq" | "id" | "status" | "attempt" | "next_attempt_at" | "expires_at">;

/** Why something is not done to a row. */
export type Objection = Exclude<OperatorOutcome["outcome"], "changed" | "not_found">;

/** Puts a dead or expired dispatch back: pending, attempt 0, error cleared; its place in its key stays (ADR-0059 D6). */
export function retry(db: Handle, ref: DispatchRef, terms: RetryTerms): OperatorOutcome {
  const row = byRef(db, ref);
  if (row === null) return { outcome: "not_found" };
  const objection = againstRetry(row, terms);
  if (objection !== null) return { outcome: objection, row };
  if (terms.dryRun === true) return { outcome: "changed", row };
  putBack(db, row, terms, "clear the error");
  record(db, terms, "dispatch.retry", row, { status: row.status, attempt: row.attempt, last_error: row.last_error });
  return { outcome: "changed", row };
}

export function againstRetry(row: Operable, terms: RetryTerms): Objection | null {
  if (row.status !== "dead_letter" && row.status !== "expired") return "wrong_status";
  const expiresAt = terms.expiresAt ?? row.expires_at;
  if (expiresAt === null) return null;
  if (expiresAt <= terms.now) return "past_expiry";
  return expiresAt <= (terms.dueAt ?? terms.now) ? "expires_first" : null;
}

/** The move alone. Many at once keep their error, which tells afterwards what they had in common. */
export function putBack(db: Handle, row: Operable, terms: RetryTerms, error: "clear the error" | "keep the error"): void {
  statement(
    db,
    `UPDATE main.dispatch_outbox SET status = 'pending', reason_code = 'dispatch.pending.operator_retry',
       reason_summary = 'put back by an operator from ' || status, attempt = 0, unresolved = 0, next_attempt_at = $due, expires_at = $expires,
       last_error = CASE WHEN $keep = 1 THEN last_error END, updated_at = $now, source = 'operator', actor = $actor, metadata = '{}'
     WHERE seq = $seq AND status IN ('dead_letter', 'expired')`,
  ).run({
    seq: row.seq,
    due: terms.dueAt ?? terms.now,
    expires: terms.expiresAt ?? row.expires_at,
    keep: error === "keep the error" ? 1 : 0,
    now: terms.now,
    actor: terms.actor,
  });
}

/** Ends a pending dispatch, or one whose runner vanished, as expired. */
export function cancel(db: Handle, ref: DispatchRef, terms: Operation): OperatorOutcome {
  const row = byRef(db, ref);
  if (row === null) return { outcome: "not_found" };
  const objection = againstCancel(row, terms);
  if (objection !== null) return { outcome: objection, row };
  if (terms.dryRun === true) return { outcome: "changed", row };
  end(db, row, terms);
  record(db, terms, "dispatch.cancel", row, { status: row.status, attempt: row.attempt });
  return { outcome: "changed", row };
}

export function againstCancel(row: Operable, { now }: Operation): Objection | null {
  if (isLive(row, now)) return "live";
  return row.status === "pending" || row.status === "delivering" ? null : "wrong_status";
}

export function end(db: Handle, row: Operable, terms: Operation): void {
  statement(
    db,
    `UPDATE main.dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled', reason_summary = 'cancelled by an operator',
       next_attempt_at = $now, lock_token = NULL, holder = NULL, updated_at = $now, source = 'operator', actor = $actor,
       metadata = json_object('attempt', attempt)
     WHERE seq = $seq AND (status = 'pending' OR (status = 'delivering' AND next_attempt_at <= $now))`,
  ).run({ seq: row.seq, now: terms.now, actor: terms.actor });
}

export interface PurgeTerms extends Operation {
  /** Also a row whose command runs. */
  readonly force?: boolean;
}

/** Deletes a dispatch and its history, and with them its dedup key. The audit row stays. */
export function purge(db: Handle, ref: DispatchRef, terms: PurgeTerms): OperatorOutcome {
  const row = byRef(db, ref);
  if (row === null) return { outcome: "not_found" };
  const objection = againstPurge(row, terms);
  if (objection !== null) return { outcome: objection, row };
  if (terms.dryRun === true) return { outcome: "changed", row };
  remove(db, row);
  record(db, terms, "dispatch.purge", row, {
    seq: row.seq,
    kind: row.kind,
    deliver_to: row.deliver_to,
    status: row.status,
    attempt: row.attempt,
    forced: terms.force === true,
  });
  return { outcome: "changed", row };
}

export function againstPurge(row: Operable, { now, force }: PurgeTerms): Objection | null {
  return isLive(row, now) && force !== true ? "live" : null;
}

export function remove(db: Handle, row: Operable): void {
  statement(db, `DELETE FROM main.dispatch_outbox WHERE seq = $seq`).run({ seq: row.seq });
  statement(db, `DELETE FROM main.status_transitions WHERE entity_id = $id AND entity_type = 'dispatch'`).run({ id: row.id });
}

/** Delivering with a lease that is not over: its command runs. */
function isLive(row: Operable, now: number): boolean {
  return row.status === "delivering" && row.next_attempt_at > now;
}

function record(db: Handle, terms: Operation, action: string, row: Dispatch, details: object): void {
  statement(
    db,
    `INSERT INTO main.admin_events (created_at, action, target_id, details, actor) VALUES ($now, $action, $id, $details, $actor)`,
  ).run({ now: terms.now, action, id: row.id, details: JSON.stringify(details), actor: terms.actor });
}
