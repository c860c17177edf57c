/** Reading: one dispatch with what is known of it, lists, and when something will happen next. */
import type { AdminEvent, Dispatch, DispatchRef, Transition } from "../core/dispatch.ts";
import { COLUMNS } from "./columns.ts";
import { type Selection, whereOf } from "./selection.ts";
import { type Handle, statement } from "./statement.ts";

export function byRef(db: Handle, ref: DispatchRef): Dispatch | null {
  return "id" in ref
    ? statement<Dispatch>(db, `SELECT ${COLUMNS} FROM main.dispatch_outbox WHERE id = $id`).get({ id: ref.id })
    : statement<Dispatch>(db, `SELECT ${COLUMNS} FROM main.dispatch_outbox WHERE seq = $seq`).get({ seq: ref.seq });
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

/** Of so many destinations that are due already, and whose first row something else keeps, the row after it is looked at. */
const LOOKED_AT = 64;

/**
 * When something will happen next by itself, epoch seconds: a row comes due or a cooldown ends, a lease runs out, a row expires or
 * is found spent, a hold ends. Null when nothing is ahead. A full destination is not: it waits for a settle.
 * @param now what is due by then is not ahead, epoch seconds
 */
export function nextMoment(db: Handle, now: number): number | null {
  return (
    statement<{ at: number | null }>(
      db,
      `WITH RECURSIVE level (n) AS (
         SELECT min(flight) FROM main.dispatch_destinations INDEXED BY dispatch_wake
         UNION ALL
         SELECT (SELECT min(d.flight) FROM main.dispatch_destinations d INDEXED BY dispatch_wake WHERE d.flight > n) FROM level WHERE n IS NOT NULL)
       SELECT min(at) AS at FROM (
         SELECT (SELECT min(d.wake_at) FROM main.dispatch_destinations d INDEXED BY dispatch_wake WHERE d.flight = level.n AND d.wake_at > $now) AS at FROM level
         UNION ALL SELECT min((SELECT min(r.next_attempt_at) FROM main.dispatch_outbox r INDEXED BY dispatch_ready
           WHERE r.deliver_to = late.deliver_to AND r.status IN ('pending', 'delivering') AND r.ready = 1 AND r.next_attempt_at > $now))
           FROM (SELECT d.deliver_to FROM level CROSS JOIN main.dispatch_destinations d INDEXED BY dispatch_wake
             WHERE d.flight = level.n AND d.wake_at <= $now LIMIT ${LOOKED_AT}) late
         UNION ALL SELECT min(next_attempt_at) FROM main.dispatch_outbox INDEXED BY dispatch_due
           WHERE status IN ('pending', 'delivering') AND status = 'delivering' AND next_attempt_at > $now
         UNION ALL SELECT min(expires_at) FROM main.dispatch_outbox INDEXED BY dispatch_expiry
           WHERE status IN ('pending', 'delivering') AND expires_at IS NOT NULL AND expires_at > $now
         UNION ALL SELECT min(next_attempt_at) FROM main.dispatch_outbox INDEXED BY dispatch_spent
           WHERE status IN ('pending', 'delivering') AND attempt >= max_attempts AND next_attempt_at > $now
         UNION ALL SELECT min(ends_at) FROM main.dispatch_holds INDEXED BY dispatch_hold_ends WHERE ends_at IS NOT NULL AND ends_at > $now)`,
    ).get({ now })?.at ?? null
  );
}
