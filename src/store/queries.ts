/** Reading: one dispatch with what is known of it, lists, and when something will happen next. */
import type { AdminEvent, Dispatch, DispatchRef, Transition } from "../core/dispatch.ts";
import { type Selection, whereOf } from "./selection.ts";
import { type Handle, statement } from "./statement.ts";

export function byRef(db: Handle, ref: DispatchRef): Dispatch | null {
  return "id" in ref
    ? statement<Dispatch>(db, `SELECT * FROM main.dispatch_outbox WHERE id = $id`).get({ id: ref.id })
    : statement<Dispatch>(db, `SELECT * FROM main.dispatch_outbox WHERE seq = $seq`).get({ seq: ref.seq });
}

/** The history of one dispatch, oldest first. */
export function history(db: Handle, id: string): Transition[] {
  return statement<Transition>(
    db,
    `SELECT id, entity_type, entity_id, previous_status, status, reason_code, reason_summary, evidence_refs, source, actor, created_at, metadata
     FROM main.status_transitions WHERE entity_id = $id AND entity_type = 'dispatch' ORDER BY id`,
  ).all({ id });
}

/** What operators did to one dispatch, oldest first. */
export function audit(db: Handle, id: string): AdminEvent[] {
  return statement<AdminEvent>(
    db,
    `SELECT id, created_at, action, target_id, details, actor FROM main.admin_events
     WHERE target_id = $id AND target_id IS NOT NULL ORDER BY id`,
  ).all({ id });
}

/** A row as lists show it: no payload, no token. */
export type Listed = Omit<Dispatch, "payload" | "ack_token" | "lock_token">;

export interface Page {
  readonly selection: Selection;
  /** 0: all. */
  readonly limit: number;
  readonly oldestFirst: boolean;
  /** The last `seq` of the page before. */
  readonly after: number | null;
}

/** A page of dispatches in the order of `seq`, which is the order in which they were committed. */
export function list(db: Handle, page: Page): Listed[] {
  const { where, params } = whereOf(page.selection);
  const order = page.oldestFirst ? "ASC" : "DESC";
  const after = page.after === null ? "" : `AND seq ${page.oldestFirst ? ">" : "<"} $after`;
  return statement<Listed>(
    db,
    `SELECT seq, id, kind, deliver_to, dedup_key, ordering_key, status, attempt, max_attempts, next_attempt_at, ack_required, holder, unresolved,
       session_id, schedule_run_id, tenant_id, user_id, user_roles, correlation_id, last_error, created_at, expires_at, updated_at,
       reason_code, reason_summary, source, actor, metadata
     FROM main.dispatch_outbox WHERE ${where} ${after} ORDER BY seq ${order} LIMIT $limit + 0`,
  ).all({ ...params, ...(page.after === null ? {} : { after: page.after }), limit: page.limit === 0 ? -1 : page.limit });
}

/**
 * When something will happen next by itself, epoch seconds: a destination comes due or its cooldown ends, a lease runs out, a row
 * expires or is found spent, a hold ends. Null when nothing is ahead. A full destination is not: it waits for a settle.
 */
export function nextMoment(db: Handle, now: number): number | null {
  return (
    statement<{ at: number | null }>(
      db,
      `SELECT min(at) AS at FROM (
         SELECT min(wake_at) AS at FROM main.dispatch_destinations INDEXED BY dispatch_wake WHERE wake_at IS NOT NULL AND wake_at > $now
         UNION ALL SELECT min(next_attempt_at) FROM main.dispatch_outbox INDEXED BY dispatch_flight WHERE status = 'delivering' AND next_attempt_at > $now
         UNION ALL SELECT min(expires_at) FROM main.dispatch_outbox INDEXED BY dispatch_expiry
           WHERE status IN ('pending', 'delivering') AND expires_at IS NOT NULL AND expires_at > $now
         UNION ALL SELECT min(next_attempt_at) FROM main.dispatch_outbox INDEXED BY dispatch_spent
           WHERE status IN ('pending', 'delivering') AND attempt >= max_attempts AND next_attempt_at > $now
         UNION ALL SELECT min(ends_at) FROM main.dispatch_holds INDEXED BY dispatch_hold_ends WHERE ends_at IS NOT NULL AND ends_at > $now)`,
    ).get({ now })?.at ?? null
  );
}
