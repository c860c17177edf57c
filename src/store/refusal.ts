import type { OutboxError } from "../core/errors.ts";
import { sqliteCode } from "./trouble.ts";

const CONSTRAINT = 19;

/**
 * Whether the database is sound and refuses what it was told to write: a row that was changed by hand, a trigger or a constraint
 * of the program whose file it is. Whatever else there is to write may be written.
 */
export function isRefusal(error: OutboxError): boolean {
  return error.kind === "data" || error.kind === "bug" || sqliteCode(error.cause) === CONSTRAINT;
}
