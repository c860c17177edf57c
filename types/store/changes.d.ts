import type { Status } from "../core/lifecycle.js";
import { type Objection } from "./operator.js";
import { type Selection } from "./selection.js";
import { type Handle } from "./statement.js";
/** What is done. Times are epoch seconds. */
export type Change = {
    readonly verb: "retry";
    /** When the first is due; null: at once. */
    readonly dueAt: number | null;
    /** Seconds between the due times of two. */
    readonly gapS: number;
    /** The new expiry; null keeps the old ones. */
    readonly expiresAt: number | null;
} | {
    readonly verb: "cancel";
} | {
    readonly verb: "purge";
    readonly force: boolean;
};
/** The statuses that a verb may be told to change, and those that it changes where the filter names none. */
export declare const CHANGEABLE: Readonly<Record<Change["verb"], {
    readonly any: readonly Status[];
    readonly untold: readonly Status[];
}>>;
export interface ChangeTerms {
    readonly change: Change;
    readonly selection: Selection;
    readonly actor: string;
    readonly dryRun: boolean;
}
/** How many were changed; how many were not, by what was in the way. */
export interface Tally {
    readonly changed: number;
    readonly refused: Readonly<Record<Objection, number>>;
}
/** A change under way. A value: what a transaction that failed would have made of it is never seen. */
export interface Progress extends Tally {
    readonly candidates: readonly number[];
    /** How many of them were looked at. */
    readonly seen: number;
    readonly startedAt: number;
    readonly auditId: number | null;
}
interface Moment {
    /** Epoch seconds. */
    readonly now: number;
    /** Whether this has lasted long enough. */
    readonly isLate: () => boolean;
}
/** What is to be looked at. Reads only. */
export declare function begin(db: Handle, terms: ChangeTerms, now: number): Progress;
export declare function isDone(progress: Progress): boolean;
/**
 * Goes past candidates that do not match, as far as time allows. Reads only, so that nobody waits for a lock meanwhile.
 * @returns where it is, and whether something there matches
 */
export declare function skip(db: Handle, terms: ChangeTerms, progress: Progress, { isLate }: Moment): {
    progress: Progress;
    found: boolean;
};
/** One batch, in the caller's transaction; where nothing is to be written, a look at what would happen. */
export declare function go(db: Handle, terms: ChangeTerms, progress: Progress, { now, isLate }: Moment): Progress;
/** All of it at once, in the caller's transaction. */
export declare function changeAll(db: Handle, terms: ChangeTerms, now: number): Progress;
/** How many were refused, whatever the reason. */
export declare function countRefused(refused: Tally["refused"]): number;
/** When the last of those that were put back is due, epoch seconds. */
export declare function lastDueAt(change: Change, { changed, startedAt }: Progress): number | null;
export {};
