/**
 * The lifecycle as data. `EDGES` is read by the code, seeded into the database (a trigger refuses every other move),
 * enumerated by the tests and printed into ARCHITECTURE.md. Below it: which move follows from an outcome.
 */
import { type Backoff } from "./backoff.js";
import type { Outcome, Report } from "./outcome.js";
export declare const STATUSES: readonly ["pending", "delivering", "delivered", "acked", "dead_letter", "expired"];
export type Status = (typeof STATUSES)[number];
/** Every move there is (ADR-0059 D4, D5; DESIGN section 3). `from: null` is the row's birth. */
export declare const EDGES: readonly [{
    readonly from: null;
    readonly to: "pending";
    readonly reason: "dispatch.pending.enqueued";
    readonly by: "system";
}, {
    readonly from: "pending";
    readonly to: "delivering";
    readonly reason: "dispatch.delivering.attempt";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "delivering";
    readonly reason: "dispatch.delivering.attempt";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "delivered";
    readonly reason: "dispatch.delivered.transport_ok";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "pending";
    readonly reason: "dispatch.delivered.transport_ok";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "pending";
    readonly reason: "dispatch.pending.retry_backoff";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "pending";
    readonly reason: "dispatch.pending.released";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "pending";
    readonly reason: "dispatch.pending.config_fault";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "dead_letter";
    readonly reason: "dispatch.dead_letter.max_attempts";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "dead_letter";
    readonly reason: "dispatch.dead_letter.unresolvable";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "dead_letter";
    readonly reason: "dispatch.dead_letter.rejected";
    readonly by: "scheduler";
}, {
    readonly from: "pending";
    readonly to: "dead_letter";
    readonly reason: "dispatch.dead_letter.ack_timeout";
    readonly by: "scheduler";
}, {
    readonly from: "pending";
    readonly to: "dead_letter";
    readonly reason: "dispatch.dead_letter.max_attempts";
    readonly by: "scheduler";
}, {
    readonly from: "pending";
    readonly to: "expired";
    readonly reason: "dispatch.expired.deadline";
    readonly by: "scheduler";
}, {
    readonly from: "delivering";
    readonly to: "expired";
    readonly reason: "dispatch.expired.deadline";
    readonly by: "scheduler";
}, {
    readonly from: "pending";
    readonly to: "expired";
    readonly reason: "dispatch.expired.cancelled";
    readonly by: "operator";
}, {
    readonly from: "delivering";
    readonly to: "expired";
    readonly reason: "dispatch.expired.cancelled";
    readonly by: "operator";
}, {
    readonly from: "pending";
    readonly to: "acked";
    readonly reason: "dispatch.acked.consumer";
    readonly by: "consumer";
}, {
    readonly from: "delivering";
    readonly to: "acked";
    readonly reason: "dispatch.acked.consumer";
    readonly by: "consumer";
}, {
    readonly from: "dead_letter";
    readonly to: "pending";
    readonly reason: "dispatch.pending.operator_retry";
    readonly by: "operator";
}, {
    readonly from: "expired";
    readonly to: "pending";
    readonly reason: "dispatch.pending.operator_retry";
    readonly by: "operator";
}];
export type Reason = (typeof EDGES)[number]["reason"];
/** Every reason once, in the order of the table. */
export declare const REASONS: readonly Reason[];
/** The last word of a reason: what people type and read. `max_attempts`. */
export declare function shortReason(reason: string): string;
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
export declare const LAST_ERROR_LIMIT = 2000;
/**
 * Which move follows from an outcome. Pure: the caller brings the clock and one random number.
 * @param now epoch seconds
 * @param random uniform in [0, 1)
 */
export declare function moveAfter(outcome: Outcome, claim: Claim, policy: Policy, now: number, random: number): Move;
/** Cuts to LAST_ERROR_LIMIT characters, never through a surrogate pair. */
export declare function cutError(error: string): string;
