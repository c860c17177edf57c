/** Reading: one dispatch with what is known of it, lists, and when something will happen next. */
import type { AdminEvent, Dispatch, DispatchRef, Transition } from "../core/dispatch.js";
import { type Selection } from "./selection.js";
import { type Handle } from "./statement.js";
export declare function byRef(db: Handle, ref: DispatchRef): Dispatch | null;
/** The history of one dispatch, oldest first. */
export declare function history(db: Handle, id: string): Transition[];
/** What operators did to one dispatch, oldest first. */
export declare function audit(db: Handle, id: string): AdminEvent[];
/** A row as lists show it: no payload, no token. */
export type Listed = Omit<Dispatch, "payload" | "ack_token" | "lock_token">;
export interface Page {
    readonly selection: Selection;
    /** 0: all. */
    readonly limit: number;
    readonly oldestFirst: boolean;
    /** The last `seq` of the page before. */
    readonly after: number | null;
}
/** A page of dispatches in the order of `seq`, which is the order in which they were committed. */
export declare function list(db: Handle, page: Page): Listed[];
/**
 * When something will happen next by itself, epoch seconds: a row comes due or a cooldown ends, a lease runs out, a row expires or
 * is found spent, a hold ends. Null when nothing is ahead. A full destination is not: it waits for a settle.
 * @param now what is due by then is not ahead, epoch seconds
 */
export declare function nextMoment(db: Handle, now: number): number | null;
