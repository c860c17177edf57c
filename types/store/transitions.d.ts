/**
 * What follows a claim: settle, renew, acknowledge. (`claim.ts` has the claim itself.) Each statement carries its full precondition
 * in WHERE; the rows it changed are the answer. The history row comes from the trigger, in the same statement.
 */
import type { DispatchRef } from "../core/dispatch.js";
import type { Move } from "../core/lifecycle.js";
import { type Handle } from "./statement.js";
/** A claim in hand: which row, which attempt, and the proof. */
export interface Held {
    readonly seq: number;
    readonly attempt: number;
    readonly lockToken: string;
}
/** What a settle came to. `acked`: the consumer was faster, the message has arrived all the same. */
export type Settled = "applied" | "acked" | "lost";
/**
 * Records what an attempt came to, in one statement, guarded by the lock token alone: a lease that is over but that
 * nobody took over still settles. A deadline that was moved by hand meanwhile holds.
 */
export declare function settle(db: Handle, claim: Held, move: Move, now: number, holder: string): Settled;
/**
 * Gives a claim in hand another lease, under its token.
 * @returns whether it is still ours
 */
export declare function renew(db: Handle, claim: Pick<Held, "seq" | "lockToken">, until: number): boolean;
/** Every answer that an acknowledgement can get (DESIGN section 9). */
export type AckOutcome = "acked" | "already_acked" | "not_found" | "not_requested" | "mismatch" | "wrong_status" | "lost_race";
/** Records the consumer's acknowledgement (ADR-0059 D5). The right token on a row already acked is no error. */
export declare function ack(db: Handle, ref: DispatchRef, token: string, now: number): AckOutcome;
