import { type Origin } from "./origin.js";
export interface EnqueueRequest {
    readonly kind: string;
    readonly deliver_to: string;
    /** A plain object; absent and null are `{}`. */
    readonly body?: object | null | undefined;
    readonly dedup_key?: string | null | undefined;
    /** Dispatches of one key are sent one after the other, in the order in which they were committed. */
    readonly ordering_key?: string | null | undefined;
    readonly ack_required?: boolean | null | undefined;
    readonly max_attempts?: number | null | undefined;
    /** Epoch seconds. */
    readonly expires_at?: number | null | undefined;
    /** Epoch seconds. */
    readonly not_before?: number | null | undefined;
    readonly session_id?: string | null | undefined;
    readonly schedule_run_id?: string | null | undefined;
    readonly emitter_role?: string | null | undefined;
    /** With `user_id`, `user_roles` and `correlation_id` its origin: for whom, and as part of what. At most 64 characters. */
    readonly tenant_id?: string | null | undefined;
    /** At most 64 characters. */
    readonly user_id?: string | null | undefined;
    /** Separated by commas. 512 characters are kept, up to a comma. */
    readonly user_roles?: string | null | undefined;
    /** At most 64 characters. */
    readonly correlation_id?: string | null | undefined;
}
/** A request whose every field is known to be storable. `body` is JSON text. */
export interface CheckedRequest extends Origin {
    readonly kind: string;
    readonly deliver_to: string;
    readonly body: string;
    readonly dedup_key: string | null;
    readonly ordering_key: string | null;
    readonly ack_required: boolean;
    readonly max_attempts: number;
    readonly expires_at: number | null;
    readonly not_before: number | null;
    readonly session_id: string | null;
    readonly schedule_run_id: string | null;
    readonly emitter_role: string | null;
    /** The fields that the caller gave a value: what a duplicate is compared by. */
    readonly asked: ReadonlySet<string>;
}
/** Bounds that the settings may narrow; the library uses these. */
export interface RequestLimits {
    /** Largest body, in bytes of UTF-8. */
    readonly payloadBytes: number;
    /** Attempts for a request that names none. */
    readonly maxAttempts: number;
}
export declare const DEFAULT_LIMITS: RequestLimits;
/**
 * Checks a request. A body that is already JSON text comes as `bodyJson` and is kept to the letter.
 * @throws OutboxError `data`, naming the field
 */
export declare function checkRequest(request: EnqueueRequest, limits?: RequestLimits, bodyJson?: string): CheckedRequest;
