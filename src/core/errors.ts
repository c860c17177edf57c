/**
 * The three kinds of trouble. An expected answer is a value; a situation that a person can mend is an `OutboxError`
 * with a kind and a hint; a bug is an `invariant` that does not hold. `cli/exit.ts` turns each kind into an exit code.
 */
export type Trouble =
  | "no" // the answer is no: not found, no database, refused by status
  | "usage" // a flag, a number, a duration or a time that cannot be read
  | "data" // a body, batch line, key, kind, destination or path that cannot be accepted
  | "bug" // ours
  | "io" // disk full, I/O error, corrupt, not an outbox file
  | "busy" // another process holds the database; asking again later is right
  | "permission" // owner, mode, access
  | "settings"; // the settings file, or a schema newer than this binary

/** A situation that a person can mend: what was attempted, with what, and what to do next. */
export class OutboxError extends Error {
  override readonly name = "OutboxError";
  readonly kind: Trouble;
  /** What to do about it, in the imperative; empty when the message already says so. */
  readonly hint: string;
  constructor(kind: Trouble, message: string, hint = "", options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
    this.hint = hint;
  }
}

/** States what must hold. If it does not, the program is wrong, not its input. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new OutboxError("bug", `this should not happen: ${what}`, "please report it");
}
