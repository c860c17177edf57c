/**
 * A program sends what it entered claimed, with a function of its own (ADR-003, dual dispatch). The lease is renewed while the
 * function runs; what it comes to is settled under the token, so whoever lost the lease changes nothing.
 */
import type { Database } from "bun:sqlite";
import type { Dispatch } from "../core/dispatch.js";
import type { Claim } from "./claim.js";
export interface HandlerInput {
    /** The row as it is delivered; `payload` is the envelope. */
    readonly dispatch: Dispatch;
    /** Aborts when the lease is lost, because somebody else may send it from then on, and when the caller's own signal does. */
    readonly signal: AbortSignal;
}
/** Does the work. Returning is success; throwing is a failed attempt. */
export type Handler = (input: HandlerInput) => unknown;
export interface DeliverOptions {
    /** Handed on to the handler. Aborted before it starts: it does not start, and the attempt is given back. */
    readonly signal?: AbortSignal | undefined;
}
/** What happened. */
export type Delivery = 
/** Nothing was run: the claim was rolled back, is not committed yet, or its lease ended and somebody else has it. */
{
    readonly outcome: "not_ours";
}
/** Nothing was run: the caller's signal had aborted. It is due at once, for a runner. */
 | {
    readonly outcome: "released";
}
/** `pending`: sent, and it waits for its acknowledgement. */
 | {
    readonly outcome: "delivered";
    readonly status: "delivered" | "pending";
}
/** The consumer acknowledged it while the handler ran. */
 | {
    readonly outcome: "acked";
}
/** `pending`: due at once, for a runner; `dead_letter`: it was the last attempt. `error`: what the handler threw. */
 | {
    readonly outcome: "failed";
    readonly status: "pending" | "dead_letter";
    readonly error: unknown;
}
/** The lease was lost while the handler ran: what it came to changes nothing. It may still run, if it minds no signal. */
 | {
    readonly outcome: "lost";
};
/**
 * Runs the program's own function for a claim that is committed. The claim's lease is renewed first, and nothing is run unless that
 * works: so never after a rollback, before the commit, or once a runner took over. As long as the handler runs the lease is renewed.
 * @throws OutboxError `data` for no claim or no function; `usage` within a transaction (nothing was run); `busy`, `io` when the database does not answer until the lease
 * is over (after the handler: it will be sent again)
 * @example await deliver(db, claim, async ({ dispatch, signal }) => { await post(dispatch.payload, signal); })
 */
export declare function deliver(db: Database, claim: Claim, handler: Handler, options?: DeliverOptions): Promise<Delivery>;
