import type { Answer, Dispatch } from "../core/dispatch.js";
import type { Refusal } from "../store/claim.js";
export interface ClaimOptions {
    readonly claim: true;
    /** How long it is the program's own, in seconds; 15 unless given. `deliver` begins within it, and renews it from then on. */
    readonly lease_seconds?: number | undefined;
    /** How many may be under way to its destination, over all runners and programs; 4 unless given. */
    readonly per_destination?: number | undefined;
}
/** A dispatch in the hands of the program that entered it. */
export interface Claim {
    readonly dispatch: Dispatch;
    readonly lease_seconds: number;
}
export interface ClaimedAnswer extends Answer {
    /** For `deliver`, after the commit. Null: it stays pending for a runner, or is the row of somebody else. */
    readonly claim: Claim | null;
    /** What was in its way; null when it was claimed. */
    readonly refusal: Refusal | "duplicate" | null;
}
