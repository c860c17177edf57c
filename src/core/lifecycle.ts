/**
 * The lifecycle as data. `EDGES` is read by the code, seeded into the database (a trigger refuses every other move),
 * enumerated by the tests and printed into ARCHITECTURE.md. Below it: which move follows from an outcome.
 */
import { type Backoff, backoffMs } from "./backoff.ts";
import { formatDuration, shortDuration } from "./duration.ts";
import type { Outcome, Report } from "./outcome.ts";

export const STATUSES = ["pending", "delivering", "delivered", "acked", "dead_letter", "expired"] as const;
export type Status = (typeof STATUSES)[number];

/** Every move there is (ADR-0059 D4, D5; DESIGN section 3). `from: null` is the row's birth. */
export const EDGES = [
  { from: null, to: "pending", reason: "dispatch.pending.enqueued", by: "system" },
  { from: "pending", to: "delivering", reason: "dispatch.delivering.attempt", by: "scheduler" },
  { from: "delivering", to: "delivering", reason: "dispatch.delivering.attempt", by: "scheduler" },
  { from: "delivering", to: "delivered", reason: "dispatch.delivered.transport_ok", by: "scheduler" },
  { from: "delivering", to: "pending", reason: "dispatch.delivered.transport_ok", by: "scheduler" },
  { from: "delivering", to: "pending", reason: "dispatch.pending.retry_backoff", by: "scheduler" },
  { from: "delivering", to: "pending", reason: "dispatch.pending.released", by: "scheduler" },
  { from: "delivering", to: "pending", reason: "dispatch.pending.config_fault", by: "scheduler" },
  { from: "delivering", to: "dead_letter", reason: "dispatch.dead_letter.max_attempts", by: "scheduler" },
  { from: "delivering", to: "dead_letter", reason: "dispatch.dead_letter.unresolvable", by: "scheduler" },
  { from: "delivering", to: "dead_letter", reason: "dispatch.dead_letter.rejected", by: "scheduler" },
  { from: "pending", to: "dead_letter", reason: "dispatch.dead_letter.ack_timeout", by: "scheduler" },
  { from: "pending", to: "dead_letter", reason: "dispatch.dead_letter.max_attempts", by: "scheduler" },
  { from: "pending", to: "expired", reason: "dispatch.expired.deadline", by: "scheduler" },
  { from: "delivering", to: "expired", reason: "dispatch.expired.deadline", by: "scheduler" },
  { from: "pending", to: "expired", reason: "dispatch.expired.cancelled", by: "operator" },
  { from: "delivering", to: "expired", reason: "dispatch.expired.cancelled", by: "operator" },
  { from: "pending", to: "acked", reason: "dispatch.acked.consumer", by: "consumer" },
  { from: "delivering", to: "acked", reason: "dispatch.acked.consumer", by: "consumer" },
  { from: "dead_letter", to: "pending", reason: "dispatch.pending.operator_retry", by: "operator" },
  { from: "expired", to: "pending", reason: "dispatch.pending.operator_retry", by: "operator" },
] as const satisfies readonly { from: Status | null; to: Status; reason: string; by: string }[];

export type Reason = (typeof EDGES)[number]["reason"];

/** Every reason once, in the order of the table. */
export const REASONS: readonly Reason[] = [...new Set(EDGES.map((edge) => edge.reason))];

/** The last word of a reason: what people type and read. `max_attempts`. */
export function shortReason(reason: string): string {
  return reason.slice(reason.lastIndexOf(".") + 1);
}

/** What a settle needs to know of the row that was claimed. Times are epoch seconds. */
export interface Claim {
  readonly attempt: number;
  readonly max_attempts: number;
  readonly ack_required: number;
  readonly expires_at: number | null;
  readonly unresolved: number;
}

export interface Policy {
  readonly backoff: Backoff;
  /** `wait`: a fault costs nothing. `fail`: it counts as a failed attempt. */
  readonly onConfigError: "wait" | "fail";
}

/** One settled outcome: what the guarded statement writes. Times are epoch seconds. */
export interface Move {
  readonly to: Status;
  readonly reason: Reason;
  readonly summary: string;
  readonly attempt: number;
  readonly nextAttemptAt: number;
  readonly lastError: string | null;
  readonly unresolved: number;
  readonly report: Report | null;
}

/** Longest error kept on the row, in characters (ADR-0059 D3). */
export const LAST_ERROR_LIMIT = 2_000;

/** Longest wait that a command may ask for with `retry-after`. */
const RETRY_AFTER_LIMIT_MS = 86_400_000;

/**
 * Which move follows from an outcome. Pure: the caller brings the clock and one random number.
 * @param now epoch seconds
 * @param random uniform in [0, 1)
 */
export function moveAfter(outcome: Outcome, claim: Claim, policy: Policy, now: number, random: number): Move {
  switch (outcome.kind) {
    case "ok":
      return afterSuccess(outcome.report, claim, policy, now, random);
    case "failed":
      return afterFailure(outcome.error, outcome.report, outcome.retryAfterMs, claim, policy, now, random);
    case "rejected":
      return dead("dispatch.dead_letter.rejected", "can never succeed", outcome.error, outcome.report, claim, now);
    case "fault":
      return policy.onConfigError === "fail"
        ? afterFailure(outcome.error, null, null, claim, policy, now, random)
        : givenBack("dispatch.pending.config_fault", `configuration: ${outcome.error}`, outcome.error, policy.backoff.baseMs, claim, now);
    case "released":
      return givenBack("dispatch.pending.released", outcome.error, null, 0, claim, now);
    case "unresolvable":
      return claim.unresolved >= 1 || claim.attempt >= claim.max_attempts
        ? {
            ...dead("dispatch.dead_letter.unresolvable", "no route for its kind", outcome.error, null, claim, now),
            unresolved: claim.unresolved + 1,
          }
        : { ...afterFailure(outcome.error, null, null, claim, policy, now, random), unresolved: claim.unresolved + 1 };
    default:
      return outcome satisfies never;
  }
}

function afterSuccess(report: Report, claim: Claim, policy: Policy, now: number, random: number): Move {
  const settled = { reason: "dispatch.delivered.transport_ok", attempt: claim.attempt, lastError: null, unresolved: 0, report } as const;
  if (claim.ack_required === 0)
    return { ...settled, to: "delivered", summary: `attempt ${claim.attempt}: the command took it`, nextAttemptAt: now };
  // The last send waits for its acknowledgement as long as the others do, so that a consumer has time to give it.
  const waitMs = backoffMs(claim.attempt, policy.backoff, random);
  return {
    ...settled,
    to: "pending",
    summary: `attempt ${claim.attempt}: the command took it; waits ${shortDuration(waitMs)} for the acknowledgement`,
    nextAttemptAt: dueBy(now, waitMs, claim),
  };
}

function afterFailure(
  error: string,
  report: Report | null,
  retryAfterMs: number | null,
  claim: Claim,
  policy: Policy,
  now: number,
  random: number,
): Move {
  if (claim.attempt >= claim.max_attempts)
    return dead("dispatch.dead_letter.max_attempts", `attempt ${claim.attempt} of ${claim.max_attempts} failed`, error, report, claim, now);
  const waitMs = retryAfterMs === null ? backoffMs(claim.attempt, policy.backoff, random) : Math.min(retryAfterMs, RETRY_AFTER_LIMIT_MS);
  return {
    to: "pending",
    reason: "dispatch.pending.retry_backoff",
    summary: `attempt ${claim.attempt} of ${claim.max_attempts} failed; again in ${retryAfterMs === null ? shortDuration(waitMs) : `${formatDuration(waitMs)}, as the command asked`}`,
    attempt: claim.attempt,
    nextAttemptAt: dueBy(now, waitMs, claim),
    lastError: cutError(error),
    unresolved: report === null ? claim.unresolved : 0,
    report,
  };
}

function dead(reason: Reason, summary: string, error: string, report: Report | null, claim: Claim, now: number): Move {
  return {
    to: "dead_letter",
    reason,
    summary,
    attempt: claim.attempt,
    nextAttemptAt: now,
    lastError: cutError(error),
    unresolved: report === null ? claim.unresolved : 0,
    report,
  };
}

/** It never started: the attempt is given back. `lastError` null keeps no trace of what was not the row's doing. */
function givenBack(reason: Reason, summary: string, error: string | null, waitMs: number, claim: Claim, now: number): Move {
  return {
    to: "pending",
    reason,
    summary,
    attempt: claim.attempt - 1,
    nextAttemptAt: dueBy(now, waitMs, claim),
    lastError: error === null ? null : cutError(error),
    unresolved: claim.unresolved,
    report: null,
  };
}

/** A pending row is never due later than it expires, so that it expires on time and frees its key. */
function dueBy(now: number, waitMs: number, claim: Claim): number {
  const due = now + waitMs / 1_000;
  return claim.expires_at === null ? due : Math.min(due, claim.expires_at);
}

/** Cuts to LAST_ERROR_LIMIT characters, never through a surrogate pair. */
export function cutError(error: string): string {
  return error.slice(0, LAST_ERROR_LIMIT).replace(/[\uD800-\uDBFF]$/, "");
}
