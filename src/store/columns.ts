/** The columns of a dispatch as everybody outside this room knows them; `ready`, a cache of the claim, is not among them. */
export const COLUMNS = `seq, id, kind, deliver_to, payload, dedup_key, ordering_key, status, attempt, max_attempts, next_attempt_at,
  ack_required, ack_token, lock_token, holder, unresolved, session_id, schedule_run_id, tenant_id, user_id, user_roles, correlation_id,
  last_error, created_at, expires_at, updated_at, reason_code, reason_summary, source, actor, metadata`;
