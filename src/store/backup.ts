/** A consistent copy of a database while others work. */
import { closeSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { OutboxError } from "../core/errors.ts";
import { refusedCode, refusedWords } from "../core/refused.ts";
import { type Handle, statement } from "./statement.ts";
import { sync } from "./sync.ts";

/**
 * Writes a copy with mode 0600 and makes it durable; a copy that was interrupted never has the name. An older copy of that
 * name is replaced. At most one process may copy to one target at a time.
 * @param db a handle in no transaction
 * @throws OutboxError `io` when the file system refuses; a SQLite error when the copy does not succeed
 */
export function copyTo(db: Handle, target: string): void {
  const partial = `${target}.partial`;
  try {
    write(db, target, partial);
  } catch (error) {
    const code = refusedCode(error);
    if (code === "" || code.startsWith("SQLITE")) throw error;
    throw new OutboxError(
      "io",
      `cannot copy the database to ${target}: ${refusedWords(error)}`,
      "free the name and some space, or move the file away",
      { cause: error },
    );
  }
}

function write(db: Handle, target: string, partial: string): void {
  rmSync(partial, { force: true }); // of a copy that was interrupted
  closeSync(openSync(partial, "wx", 0o600)); // VACUUM INTO takes an empty file, and keeps its mode
  try {
    statement(db, `VACUUM main INTO $partial`).run({ partial });
    sync(partial);
    renameSync(partial, target);
    sync(dirname(target));
  } finally {
    rmSync(partial, { force: true });
  }
}
