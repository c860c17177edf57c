/** Entering a dispatch: the row and, by trigger, its first history row, in the caller's transaction (ADR-0059 D2). */
import type { Answer, Dispatch } from "../core/dispatch.ts";
import { envelope, hasBody } from "../core/envelope.ts";
import type { Origin } from "../core/origin.ts";
import type { CheckedRequest } from "../core/request.ts";
import { invariant } from "../core/errors.ts";
import type { Entropy } from "../core/seams.ts";
import { type Handle, statement } from "./statement.ts";

type Entered = Pick<
  Dispatch,
  | "seq"
  | "id"
  | "status"
  | "attempt"
  | "max_attempts"
  | "next_attempt_at"
  | "expires_at"
  | "ack_token"
  | "kind"
  | "deliver_to"
  | "ordering_key"
  | "ack_required"
  | "payload"
  | "session_id"
  | "schedule_run_id"
  | keyof Origin
  | "created_at"
  | "reason_code"
>;

/**
 * Enters one dispatch, or answers with the row that has its dedup key already: the first committed row stands.
 * @param now epoch seconds
 */
export function enqueue(db: Handle, request: CheckedRequest, now: number, entropy: Entropy): Answer {
  const first = request.dedup_key === null ? null : byDedupKey(db, request.dedup_key);
  return first === null ? insert(db, request, now, entropy) : answer(first, "duplicate", differences(first, request));
}

function byDedupKey(db: Handle, dedupKey: string): Entered | null {
  return statement<Entered>(
    db,
    `SELECT seq, id, status, attempt, max_attempts, next_attempt_at, expires_at, ack_token, kind, deliver_to, ordering_key,
       ack_required, payload, session_id, schedule_run_id, tenant_id, user_id, user_roles, correlation_id, created_at, reason_code
     FROM main.dispatch_outbox WHERE dedup_key = $dedup_key AND dedup_key IS NOT NULL`,
  ).get({ dedup_key: dedupKey });
}

function insert(db: Handle, request: CheckedRequest, now: number, entropy: Entropy): Answer {
  const id = entropy.id();
  const ackToken = request.ack_required ? entropy.token() : null;
  const createdAt = Math.round(now * 1_000) / 1_000; // column and envelope agree
  const dueAt = firstDue(request.not_before, createdAt, request.expires_at);
  const row = {
    id,
    kind: request.kind,
    deliver_to: request.deliver_to,
    dedup_key: request.dedup_key,
    ordering_key: request.ordering_key,
    max_attempts: request.max_attempts,
    next_attempt_at: dueAt,
    ack_required: request.ack_required ? 1 : 0,
    ack_token: ackToken,
    session_id: request.session_id,
    schedule_run_id: request.schedule_run_id,
    tenant_id: request.tenant_id,
    user_id: request.user_id,
    user_roles: request.user_roles,
    correlation_id: request.correlation_id,
    created_at: createdAt,
    expires_at: request.expires_at,
    reason_summary: `enqueued kind=${request.kind}`,
    payload: envelope({
      signalId: entropy.signalId(),
      createdAt,
      emitterRole: request.emitter_role,
      dispatchId: id,
      kind: request.kind,
      deliverTo: request.deliver_to,
      ackToken,
      body: request.body,
    }),
  };
  const entered = statement<{ seq: number }>(
    db,
    `INSERT INTO main.dispatch_outbox (id, kind, deliver_to, payload, dedup_key, ordering_key, max_attempts, next_attempt_at, ack_required, ack_token,
       session_id, schedule_run_id, tenant_id, user_id, user_roles, correlation_id, created_at, expires_at, updated_at, reason_code, reason_summary, source, actor)
     VALUES ($id, $kind, $deliver_to, $payload, $dedup_key, $ordering_key, $max_attempts, $next_attempt_at, $ack_required, $ack_token,
       $session_id, $schedule_run_id, $tenant_id, $user_id, $user_roles, $correlation_id, $created_at, $expires_at, $created_at, 'dispatch.pending.enqueued', $reason_summary, 'system', 'enqueue_dispatch')
     RETURNING seq`,
  ).get(row);
  invariant(entered !== null, "an INSERT that succeeds returns its row");
  return {
    id,
    seq: entered.seq,
    outcome: "created",
    status: "pending",
    attempt: 0,
    next_attempt_at: dueAt,
    expires_at: request.expires_at,
    ack_token: ackToken,
    differs: [],
  };
}

/** A row is never due later than it expires; one already past its expiry is due at once, and ends expired. */
function firstDue(notBefore: number | null, createdAt: number, expiresAt: number | null): number {
  return Math.min(Math.max(notBefore ?? createdAt, createdAt), expiresAt ?? Infinity);
}

/** What the caller asked for, in its own words, that the first row has otherwise. Defaults are not asked for. */
function differences(first: Entered, request: CheckedRequest): string[] {
  const emitterRole = (JSON.parse(first.payload) as { emitter_role: string | null }).emitter_role;
  const untouched = first.status === "pending" && first.attempt === 0 && first.reason_code === "dispatch.pending.enqueued";
  const same: Readonly<Record<string, boolean>> = {
    kind: first.kind === request.kind,
    deliver_to: first.deliver_to === request.deliver_to,
    ordering_key: first.ordering_key === request.ordering_key,
    body: hasBody(first.payload, request.body),
    // Not asked for is an answer too: the caller will not wait for an acknowledgement that the row demands.
    ack_required: (first.ack_required === 1) === request.ack_required,
    max_attempts: first.max_attempts === request.max_attempts,
    expires_at: first.expires_at === request.expires_at,
    // Only an untouched row still shows when it was first due. Asking for a time that had passed was asking for "at once".
    not_before: !untouched || first.next_attempt_at === firstDue(request.not_before, first.created_at, first.expires_at),
    session_id: first.session_id === request.session_id,
    schedule_run_id: first.schedule_run_id === request.schedule_run_id,
    emitter_role: emitterRole === request.emitter_role,
    tenant_id: first.tenant_id === request.tenant_id,
    user_id: first.user_id === request.user_id,
    user_roles: first.user_roles === request.user_roles,
    correlation_id: first.correlation_id === request.correlation_id,
  };
  const always = ["ack_required"];
  return Object.keys(same).filter((field) => same[field] === false && (always.includes(field) || request.asked.has(field)));
}

function answer(row: Entered, outcome: Answer["outcome"], differs: readonly string[]): Answer {
  const { id, seq, status, attempt, next_attempt_at, expires_at, ack_token } = row;
  return { id, seq, outcome, status, attempt, next_attempt_at, expires_at, ack_token, differs };
}
