import type { OutboxError } from "../core/errors.ts";
import { refusedCode } from "../core/refused.ts";
import { sqliteCode } from "./failed.ts";

const CONSTRAINT = 19;

/**
 * Whether the database is sound and refuses what it was told to write: a row that was changed by hand, a trigger or a constraint
 * of the program whose file it is. Whatever else there is to write may be written.
 */
export function isRefusal(error: OutboxError): boolean {
  return error.kind === "data" || error.kind === "bug" || sqliteCode(error.cause) === CONSTRAINT;
}

/** Of SQLite: an I/O error, a full disk, a file that cannot be opened just now, locks in disorder. */
const PASSING = [10, 13, 14, 15];
const PASSING_CODES = ["EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC"];

/** Whether a person has to do something before it can be opened: trying again finds the same. */
export function isLasting(error: OutboxError): boolean {
  if (error.kind === "permission" || error.kind === "settings") return true;
  return error.kind === "io" && !PASSING.includes(sqliteCode(error.cause) ?? 0) && !PASSING_CODES.includes(refusedCode(error.cause));
}
