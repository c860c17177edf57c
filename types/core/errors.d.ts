/**
 * The three kinds of trouble. An expected answer is a value; a situation that a person can mend is an `OutboxError`
 * with a kind and a hint; a bug is an `invariant` that does not hold. `cli/exit.ts` turns each kind into an exit code.
 */
export type Trouble = "no" | "usage" | "data" | "bug" | "io" | "busy" | "permission" | "settings";
/** A situation that a person can mend: what was attempted, with what, and what to do next. */
export declare class OutboxError extends Error {
    readonly name = "OutboxError";
    readonly kind: Trouble;
    /** What to do about it, in the imperative; empty when the message already says so. */
    readonly hint: string;
    constructor(kind: Trouble, message: string, hint?: string, options?: ErrorOptions);
}
/** States what must hold. If it does not, the program is wrong, not its input. */
export declare function invariant(condition: unknown, what: string): asserts condition;
