/** What a row needs to be claimed, in SQL: the claim asks for it, and whoever says beforehand what will be claimed. */
import type { Params } from "./statement.js";
/** What a claim may take. Times are epoch seconds. */
export interface ClaimTerms {
    readonly now: number;
    /** Only rows due by this instant; `now` or earlier. */
    readonly dueBy: number;
    /** Host, pid and start time of this runner; also the actor in the history. */
    readonly holder: string;
    /** Lease in seconds for kinds that `kinds` does not name; null: they are not claimed (their rows still end). */
    readonly fallbackLeaseS: number | null;
    /** The same by kind. */
    readonly kinds: ReadonlyMap<string, number | null>;
    /** Live claims for one destination, over all runners. */
    readonly perDestination: number;
    /** Whether circuits count. */
    readonly circuits: boolean;
    /** Rows whose command this runner still has in hand: never taken from itself. */
    readonly inHand: readonly number[];
    /** Holders that still live on this host: their rows wait one lease more. */
    readonly alive: readonly string[];
}
export declare const OURS = "status IN ('pending', 'delivering')";
/** The lease of row `o`'s kind, null when it is not claimed. */
export declare const LEASE = "CASE WHEN $kinds IS NOT NULL AND o.kind IN (SELECT k.key FROM json_each($kinds) k)\n  THEN (SELECT k.value FROM json_each($kinds) k WHERE k.key = o.kind) ELSE $fallback END";
export declare const DUE = "o.next_attempt_at <= $due_by";
/** It has not come to its end. */
export declare const LASTS = "o.attempt < o.max_attempts AND (o.expires_at IS NULL OR o.expires_at > $now)";
/** Nothing holds it and no earlier row of its key is under way. */
export declare const ITS_TURN = "(SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)";
/**
 * No other row of its key is live: a row that an operator put back must not join a younger one that runs. One whose lease is over
 * does not count, or the two would wait for each other for ever.
 */
export declare const ALONE = "(o.ordering_key IS NULL OR NOT EXISTS (SELECT 1 FROM main.dispatch_outbox p INDEXED BY dispatch_key_flight\n  WHERE p.ordering_key = o.ordering_key AND p.status = 'delivering' AND p.ordering_key IS NOT NULL AND p.next_attempt_at > $now AND p.seq <> o.seq))";
/** Something can send its kind. (Two lists, made once a statement: a row must not cost a look through a map.) */
export declare const ROUTED = "CASE WHEN $kinds IS NULL THEN $fallback IS NOT NULL ELSE o.kind IN (SELECT k.key FROM json_each($kinds) k WHERE k.value IS NOT NULL)\n  OR ($fallback IS NOT NULL AND o.kind NOT IN (SELECT k.key FROM json_each($kinds) k)) END";
export declare const NOT_IN_HAND = "($in_hand IS NULL OR o.seq NOT IN (SELECT value FROM json_each($in_hand)))";
/** A stale row of a process that still lives on this host gets one more lease: it may only be slow (DESIGN section 8). */
export declare const ABANDONED = "(o.status = 'pending' OR o.holder IS NULL OR $alive IS NULL OR o.holder NOT IN (SELECT value FROM json_each($alive))\n  OR o.next_attempt_at + coalesce(CASE WHEN $kinds IS NOT NULL AND o.kind IN (SELECT k.key FROM json_each($kinds) k)\n  THEN (SELECT k.value FROM json_each($kinds) k WHERE k.key = o.kind) ELSE $fallback END, 0) <= $now)";
/** Its circuit is closed, or its cooldown is over. */
export declare const LET_THROUGH = "(d.open_until IS NULL OR $circuits = 0 OR d.open_until <= $due_by)";
/** Claims of destination `d` whose lease is not over. */
export declare const LIVE = "(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight\n  WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now)";
/** Live claims leave room for another; after a cooldown for one alone, the probe, over all runners. */
export declare const ROOM = "(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight\n  WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now)\n  < CASE WHEN d.open_until IS NULL OR $circuits = 0 THEN $per_destination ELSE 1 END";
export declare function params(terms: Omit<ClaimTerms, "perDestination" | "circuits">): Params;
export declare function gates(terms: ClaimTerms): Params;
