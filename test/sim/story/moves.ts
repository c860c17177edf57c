/** Whether a move of a row was lawful, and whether it says what happened. */
import { EDGES } from "../../../src/core/lifecycle.ts";
import { wrongClaim } from "./claims.ts";
import type { Row } from "./journal.ts";
import type { Process } from "./process.ts";
import type { State } from "./state.ts";
import { BACKOFF } from "./terms.ts";

/** Whether anything but the lease changed. */
export function isMove(was: Row, is: Row): boolean {
  return (
    was.status !== is.status ||
    was.attempt !== is.attempt ||
    was.lock_token !== is.lock_token ||
    was.reason_code !== is.reason_code ||
    was.updated_at !== is.updated_at
  );
}

/** What is wrong with it; null when nothing is. */
export function wrongMove(state: State, was: Row, is: Row, by: Process): string | null {
  if (!EDGES.some(({ from, to, reason }) => from === was.status && to === is.status && reason === is.reason_code))
    return `there is no way from ${was.status} to ${is.status} by ${is.reason_code}`;
  switch (is.reason_code) {
    case "dispatch.delivering.attempt":
      return wrongClaim(state, was, is);
    case "dispatch.expired.deadline":
      if (is.expires_at === null || is.expires_at > is.updated_at) return "its time was not over";
      return lived(was, is);
    case "dispatch.expired.cancelled":
      return lived(was, is);
    case "dispatch.acked.consumer":
      return was.ack_required === 1 ? null : "nobody asked for an acknowledgement";
    case "dispatch.dead_letter.ack_timeout":
      return was.attempt >= was.max_attempts && was.next_attempt_at <= is.updated_at ? null : "it had attempts left, or was not due";
    case "dispatch.pending.operator_retry":
      return is.attempt === 0 ? null : "an operator's retry begins at attempt 0";
    default:
      return wrongSettle(state, was, is, by);
  }
}

function lived(was: Row, is: Row): string | null {
  return was.status === "delivering" && was.next_attempt_at > is.updated_at ? "it was live" : null;
}

/** What an attempt came to: only its own process may write it, and only what its command did. */
function wrongSettle(state: State, was: Row, is: Row, by: Process): string | null {
  const token = was.lock_token ?? "";
  const claim = state.claims.get(token);
  if (is.reason_code === "dispatch.dead_letter.max_attempts" && was.attempt < was.max_attempts) return "it had attempts left";
  if (!by.tokens.has(token)) {
    const ended = is.reason_code === "dispatch.dead_letter.max_attempts" && was.next_attempt_at <= is.updated_at;
    return ended ? null : `${by.name} settled a claim that is not its own`;
  }
  const given = is.reason_code === "dispatch.pending.released" || is.reason_code === "dispatch.pending.config_fault";
  if (is.attempt !== was.attempt - (given ? 1 : 0))
    return `the attempt number went from ${was.attempt} to ${is.attempt} by ${is.reason_code}`;
  const command = claim?.command ?? null;
  if (given) return command === null ? null : "it was given back although its command had started";
  if (is.reason_code === "dispatch.delivered.transport_ok" && command?.outcome !== "ok") return "no command of this claim had succeeded";
  if (is.reason_code === "dispatch.dead_letter.rejected" && command?.outcome !== "rejected") return "no command of this claim was rejected";
  // What never started is a failed attempt where its kind says so, or has no route.
  const failed = is.reason_code === "dispatch.pending.retry_backoff" || is.reason_code === "dispatch.dead_letter.max_attempts";
  if (failed && command === null && was.kind === "ping" && was.next_attempt_at > is.updated_at)
    return "an attempt was spent on a command that never started";
  if (is.reason_code !== "dispatch.pending.retry_backoff") return null;
  if (command !== null && command.outcome !== "failed") return "no command of this claim had failed";
  const waitMs = command?.isProgram === true ? 0 : (command?.retryAfterMs ?? Math.min(BACKOFF.baseMs * 2 ** was.attempt, BACKOFF.maxMs));
  const due = Math.min(is.updated_at + waitMs / 1_000, is.expires_at ?? Number.POSITIVE_INFINITY);
  return Math.abs(is.next_attempt_at - due) < 0.002
    ? null
    : `it is due ${is.next_attempt_at - is.updated_at} s later, not after its backoff`;
}
