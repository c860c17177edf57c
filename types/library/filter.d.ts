/** Filters, as programs write them: the names of columns, one value or several. */
import type { Database } from "bun:sqlite";
import { type Status } from "../core/lifecycle.js";
import { type Change } from "../store/changes.js";
import type { Selection } from "../store/selection.js";
/** Which dispatches. All that are given must match; of several values any. */
export interface Filter {
    readonly status?: Status | readonly Status[] | undefined;
    readonly kind?: string | readonly string[] | undefined;
    readonly deliver_to?: string | readonly string[] | undefined;
    readonly dedup_key?: string | readonly string[] | undefined;
    readonly ordering_key?: string | readonly string[] | undefined;
    /** Last word of the reason of the last move: `max_attempts`. */
    readonly reason?: string | readonly string[] | undefined;
    /** Last move at or after, epoch seconds. */
    readonly since?: number | undefined;
    /** Last move before, epoch seconds. */
    readonly before?: number | undefined;
}
/** Which dispatches are changed. One that names nothing is refused: everything is `{ all: true }`. */
export type ChangeFilter = (Filter & {
    readonly all?: undefined;
}) | {
    readonly all: true;
};
/** What came of a change by filter. */
export interface Changed {
    readonly changed: number;
    /** Those that match and were left: their command runs, or their expiry is in the way. */
    readonly refused: number;
}
export declare const FILTERS: {
    status: import("./input.js").Check;
    kind: import("./input.js").Check;
    deliver_to: import("./input.js").Check;
    dedup_key: import("./input.js").Check;
    ordering_key: import("./input.js").Check;
    reason: import("./input.js").Check;
    since: import("./input.js").Check;
    before: import("./input.js").Check;
};
/**
 * A list that came out empty is refused: read as no filter at all, it would change everything else that matches.
 * @throws OutboxError `data` for a status or reason that is none, and for an empty list
 */
export declare function selectionOf(filter: Filter): Selection;
export interface ChangeOptions {
    readonly actor?: string | undefined;
    readonly dry_run?: boolean | undefined;
}
/** All that match, the oldest first, in the caller's transaction or in one of its own. @throws OutboxError as `retry` */
export declare function changeBy(db: Database, filter: ChangeFilter, change: Change, options: ChangeOptions): Changed;
