/** SQLite's errors as situations that a person can mend. Nothing outside this room knows SQLite's codes. */
import { OutboxError, type Trouble } from "../core/errors.ts";
import { diagnose } from "./diagnosis.ts";
import { extendedCode, sqliteCode } from "./failed.ts";
import { MIGRATIONS } from "./migrate.ts";

const SITUATIONS: Readonly<Record<number, readonly [Trouble, string, string]>> = {
  3: ["permission", "access was denied", "check owner and mode"],
  5: ["busy", "another process holds its write lock", "try again"],
  6: ["busy", "it is locked", "try again"],
  7: ["busy", "the machine is out of memory", "try again"],
  8: ["permission", "it cannot be written", "check owner and mode of the file and its directory"],
  10: ["io", "an I/O error", "check the disk, then the file with PRAGMA integrity_check"],
  11: ["io", "it is corrupt", "restore it from a copy"],
  13: ["io", "the disk is full", "free some space"],
  14: ["io", "it cannot be opened", "check that the path and its directory exist and can be read"],
  15: ["io", "its locks are in disorder", "try again"],
  18: ["data", "a value is too big for the database", "send less"],
  23: ["permission", "access was denied", "check owner and mode"],
  26: ["io", "it is not a database", "name another file, or move this one away"],
};

const BUG = ["bug", "the database refused a statement", "please report it"] as const;
const OF_THE_PROGRAM = ["io", "a rule of its own refuses this", "look for a trigger or constraint of the program that owns it"] as const;

/** A constraint or a trigger that is none of ours: ours have our names, and say `dispatch:`. */
function isOfTheProgram(error: unknown, code: number): boolean {
  if (code !== CONSTRAINT || !(error instanceof Error)) return false;
  const check = /^CHECK constraint failed: (.+)$/.exec(error.message)?.[1];
  if (check !== undefined) return !MIGRATIONS.some((sql) => sql.includes(`CONSTRAINT ${check} CHECK`));
  return !/^dispatch: |\b(?:dispatch_\w+|status_transitions|admin_events)\.\w+/.test(error.message);
}
const CONSTRAINT = 19;

/**
 * Turns whatever a store function threw into an OutboxError. Errors that are ours already, and errors that are not
 * SQLite's, pass through.
 */
export function asTrouble(error: unknown, path: string): unknown {
  if (error instanceof OutboxError) return error;
  const code = sqliteCode(error);
  if (code === null) return error;
  const found = error instanceof Error ? diagnose(extendedCode(error) ?? code, error.message, path) : null;
  if (found !== null) return new OutboxError(found[0], `database ${path}${found[1]}`, found[2], { cause: error });
  const [kind, what, hint] = isOfTheProgram(error, code) ? OF_THE_PROGRAM : (SITUATIONS[code] ?? BUG);
  // Of a lock SQLite's words say less than ours; of everything else they may name what matters.
  const words = kind === "busy" || !(error instanceof Error) ? "" : ` (${error.message})`;
  return new OutboxError(kind, `database ${path}: ${what}${words}`, hint, { cause: error });
}
