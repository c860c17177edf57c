/** A consistent copy of a database while others work. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Handle, statement } from "./statement.ts";

/**
 * Writes a copy with mode 0600 and makes it durable; a copy that was interrupted never has the name. An existing file
 * is kept and no copy is made.
 */
export function copyTo(db: Handle, target: string): void {
  if (existsSync(target)) return;
  const partial = `${target}.${crypto.randomUUID()}.partial`;
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

function sync(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
