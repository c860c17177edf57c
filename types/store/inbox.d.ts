/**
 * A consumer's inbox: what it has handled, so that a message that comes twice is handled once. Work is begun, and completed or
 * abandoned by whoever holds the token of that beginning. These functions open no transaction: each stands in one of its caller's,
 * so that a rollback takes the entry back with everything else.
 */
import type { DispatchRef } from "../core/dispatch.js";
import type { Standing } from "../core/seams.js";
import { type Handle } from "./statement.js";
/** The right to complete or abandon what was begun. Plain data: it may be kept, and handed on. */
export interface InboxClaim {
    readonly consumer: string;
    /** 32 hex digits. */
    readonly dispatch_id: string;
    readonly token: string;
}
/** What came of asking to begin. */
export type Begun = 
/** It is the asker's own to do. */
{
    readonly outcome: "begun";
    readonly claim: InboxClaim;
}
/** Its success is recorded, at this time in epoch seconds: there is nothing to do. */
 | {
    readonly outcome: "duplicate";
    readonly done_at: number;
}
/** Somebody works at it. `holder`: host, pid and process start time; `begun_at`: since when, epoch seconds. */
 | {
    readonly outcome: "held";
    readonly holder: string;
    readonly begun_at: number;
};
export interface BeginTerms {
    /** Epoch seconds. */
    readonly now: number;
    /** Host, pid and start time of this process. */
    readonly holder: string;
    /** A fresh token. */
    readonly token: string;
    /** What is known of the process that holds an entry. */
    readonly standing: (holder: string) => Standing;
}
/**
 * After so many seconds an entry is taken over whose process cannot be looked for: of another host, or of this machine under an
 * earlier name. Whoever works at one message for longer than a day loses it only to somebody on another host.
 */
export declare const TAKE_OVER_UNKNOWN_S = 86400;
interface Key {
    readonly consumer: string;
    /** 32 hex digits. The dispatch may be one of another database. */
    readonly id: string;
}
/** Begins work, anew or in the place of a process that has ended. Its first statement takes the write lock: what is read then stays so. */
export declare function begin(db: Handle, { consumer, id }: Key, { now, holder, token, standing }: BeginTerms): Begun;
/** Records the success. `lost`: somebody took it over, or it was rolled back; nothing changes. */
export declare function complete(db: Handle, claim: InboxClaim, now: number): "completed" | "lost";
/** Gives it back, so that the next who asks begins anew. `lost`: somebody took it over, or it was rolled back; nothing changes. */
export declare function abandon(db: Handle, claim: InboxClaim): "abandoned" | "lost";
/** Which entry a dispatch has: by its number, in this database. */
export declare function idOf(db: Handle, ref: DispatchRef): string | null;
export interface ForgetTerms {
    /** Epoch seconds. */
    readonly now: number;
    /** Only what was done, or begun, by then. */
    readonly before: number;
    /** How many of the oldest are known to be kept. */
    readonly skip: number;
    readonly limit: number;
    readonly isAlive: (holder: string) => boolean;
}
/**
 * Forgets the oldest entries. Kept is what belongs to a message of this database that may still come again, and what somebody works
 * at: a process of this host that lives, or one that cannot be looked for and began within a day.
 * @returns how many were looked at and stay, and how many are gone
 */
export declare function forget(db: Handle, { now, before, skip, limit, isAlive }: ForgetTerms): {
    readonly kept: number;
    readonly removed: number;
};
export {};
