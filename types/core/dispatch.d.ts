/** One message to deliver, as it is stored and as its parts are named everywhere: library, JSON, SQL. */
import type { Status } from "./lifecycle.js";
/** A row of `dispatch_outbox`. Times are epoch seconds. */
export interface Dispatch {
    /** Insert order; the short number that people type. */
    readonly seq: number;
    /** 32 hex digits, time-ordered. */
    readonly id: string;
    readonly kind: string;
    readonly deliver_to: string;
    /** The envelope, byte-identical on every attempt (ADR-0059 D1). */
    readonly payload: string;
    readonly dedup_key: string | null;
    readonly ordering_key: string | null;
    readonly status: Status;
    readonly attempt: number;
    readonly max_attempts: number;
    /** Due time of a pending row; end of the lease of a delivering one. */
    readonly next_attempt_at: number;
    readonly ack_required: number;
    readonly ack_token: string | null;
    readonly lock_token: string | null;
    /** Host, pid and process start time of the claimant. */
    readonly holder: string | null;
    /** How often in a row no route was found for its kind. */
    readonly unresolved: number;
    readonly session_id: string | null;
    readonly schedule_run_id: string | null;
    readonly tenant_id: string | null;
    readonly user_id: string | null;
    readonly user_roles: string | null;
    readonly correlation_id: string | null;
    readonly last_error: string | null;
    readonly created_at: number;
    readonly expires_at: number | null;
    /** Of the last move, as are `reason_code`, `reason_summary`, `source`, `actor` and `metadata`. */
    readonly updated_at: number;
    readonly reason_code: string;
    readonly reason_summary: string;
    readonly source: string;
    readonly actor: string;
    readonly metadata: string;
}
/** One row of `status_transitions` (ADR-0059 D2). */
export interface Transition {
    readonly id: number;
    readonly entity_type: string;
    readonly entity_id: string;
    readonly previous_status: Status | null;
    readonly status: Status;
    readonly reason_code: string;
    readonly reason_summary: string;
    readonly evidence_refs: string;
    readonly source: string;
    readonly actor: string;
    readonly created_at: number;
    readonly metadata: string;
}
/** One row of `admin_events`: what an operator did. */
export interface AdminEvent {
    readonly id: number;
    readonly created_at: number;
    readonly action: string;
    readonly target_id: string | null;
    readonly details: string;
    readonly actor: string;
}
/** How people name a dispatch: the 32-hex id or the number that `ls` prints. */
export type DispatchRef = {
    readonly id: string;
} | {
    readonly seq: number;
};
/**
 * Reads what a person typed as an ID. Null: it can be neither (so no such row exists).
 * @example parseRef("417") // { seq: 417 }
 */
export declare function parseRef(text: string): DispatchRef | null;
/** What `enqueue` answers, in the library and as `enqueue --json`. */
export interface Answer {
    readonly id: string;
    readonly seq: number;
    readonly outcome: "created" | "duplicate";
    readonly status: Status;
    readonly attempt: number;
    readonly next_attempt_at: number;
    readonly expires_at: number | null;
    readonly ack_token: string | null;
    /** What a duplicate asked for and the first row has otherwise. Empty when created. */
    readonly differs: readonly string[];
}
