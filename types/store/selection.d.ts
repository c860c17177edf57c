/** Filters, turned into a WHERE clause in one place. All that are given must match; a repeated one means any of its values. */
import type { Status } from "../core/lifecycle.js";
import type { Params } from "./statement.js";
export interface Selection {
    readonly status?: readonly Status[];
    readonly kind?: readonly string[];
    readonly to?: readonly string[];
    readonly dedupKey?: readonly string[];
    readonly orderingKey?: readonly string[];
    /** Last word of the reason of the last move: `max_attempts`. */
    readonly reason?: readonly string[];
    /** Last move at or after, epoch seconds. */
    readonly since?: number;
    /** Last move before, epoch seconds. */
    readonly before?: number;
}
export declare function whereOf(selection: Selection): {
    readonly where: string;
    readonly params: Params;
};
