/** What an operator does to one dispatch: retry, cancel, purge. Each writes one audit row in the same transaction. */
import type { Dispatch, DispatchRef } from "../core/dispatch.js";
import { type Handle } from "./statement.js";
export type OperatorOutcome = {
    readonly outcome: "changed";
    readonly row: Dispatch;
} | {
    readonly outcome: "not_found";
}
/** Not in a status from which this can be done. */
 | {
    readonly outcome: "wrong_status";
    readonly row: Dispatch;
}
/** Its command runs: the lease is not over. */
 | {
    readonly outcome: "live";
    readonly row: Dispatch;
}
/** Its expiry has passed and no new one was given. */
 | {
    readonly outcome: "past_expiry";
    readonly row: Dispatch;
}
/** It would be due only at its expiry or later. */
 | {
    readonly outcome: "expires_first";
    readonly row: Dispatch;
};
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
export declare function retry(db: Handle, ref: DispatchRef, terms: RetryTerms): OperatorOutcome;
export declare function againstRetry(row: Operable, terms: RetryTerms): Objection | null;
/** The move alone. Many at once keep their error, which tells afterwards what they had in common. */
export declare function putBack(db: Handle, row: Operable, terms: RetryTerms, error: "clear the error" | "keep the error"): void;
/** Ends a pending dispatch, or one whose runner vanished, as expired. */
export declare function cancel(db: Handle, ref: DispatchRef, terms: Operation): OperatorOutcome;
export declare function againstCancel(row: Operable, { now }: Operation): Objection | null;
export declare function end(db: Handle, row: Operable, terms: Operation): void;
export interface PurgeTerms extends Operation {
    /** Also a row whose command runs. */
    readonly force?: boolean;
}
/** Deletes a dispatch and its history, and with them its dedup key. The audit row stays. */
export declare function purge(db: Handle, ref: DispatchRef, terms: PurgeTerms): OperatorOutcome;
export declare function againstPurge(row: Operable, { now, force }: PurgeTerms): Objection | null;
export declare function remove(db: Handle, row: Operable): void;
