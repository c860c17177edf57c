/**
 * The claim: who may be sent now, and to whom the next free slot goes. All guards stand in the statement itself and are
 * asked again for every row, so they hold within a batch too. Its cost does not grow with rows that cannot move: those
 * are not `ready`, and their destinations are not due (migration 0002).
 */
import type { Dispatch } from "../core/dispatch.js";
import { type ClaimTerms } from "./guards.js";
import { type Handle } from "./statement.js";
export type { ClaimTerms } from "./guards.js";
/**
 * Ends one due row that is past its expiry or out of attempts. That needs no permission: also held rows, rows behind a
 * key and rows of a full or failing destination end. Run it until it answers null.
 */
export declare function endNext(db: Handle, terms: ClaimTerms): Dispatch | null;
/**
 * Claims one row: of the due destination with the fewest live claims, its first. Run it until it answers null.
 *
 * The walk goes by `flight` and then by who has waited longest, one level after the other: destinations that are full stand
 * behind all that are not, so nobody pays for them. It stops at the first that passes; CROSS JOIN keeps SQLite from another order.
 * A destination whose first row has come to its end waits for `endNext`: looking further would read all that ended with it.
 * @param token a fresh lock token
 */
export declare function claimNext(db: Handle, terms: ClaimTerms, token: string): Dispatch | null;
/** Claims exactly this row, by the same guards. @returns null when one of them is in its way */
export declare function claimThis(db: Handle, seq: number, terms: ClaimTerms, token: string): Dispatch | null;
/** What keeps a row from being claimed. */
export type Refusal = "not due" | "expired" | "no route" | "held" | "behind its key" | "circuit open" | "destination full" | "taken";
/** Why `claimThis` refuses a row. */
export declare function refusalOf(db: Handle, seq: number, terms: ClaimTerms): Refusal;
/**
 * Takes leases that ran out off the claims in flight of their destinations, so that dead runners' rows cost nobody a slot. Where
 * nothing changes nothing is written: every commit wakes the other runners, whose next claim would wake this one.
 */
export declare function recount(db: Handle, now: number): void;
/** Who holds rows whose lease is over by then: the caller knows which of these processes still live. */
export declare function staleHolders(db: Handle, by: number): string[];
/** When the first stale row of a living holder may be taken after `after`, epoch seconds: a lease after its lease. Null: there is none. */
export declare function patienceEnds(db: Handle, { after, ...terms }: Pick<ClaimTerms, "now" | "alive" | "kinds" | "fallbackLeaseS"> & {
    readonly after: number;
}): number | null;
