/** Making a database file: 0600 in a 0700 directory, and its name as durable as the commits that follow. */
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { OutboxError } from "../core/errors.ts";
import { isDenied, refusedCode, refusedWords } from "../core/refused.ts";
import { exists } from "./place.ts";
import { sync } from "./sync.ts";

/**
 * Creates the empty file, unless it exists. SQLite's companions copy its mode.
 * @param mayMakeDirectory only at the default place: elsewhere a missing directory is an unmounted disk or a typo
 * @throws OutboxError `io` or `permission`
 */
export function makeFile(path: string, mayMakeDirectory: boolean): void {
  const directory = dirname(path);
  if (mayMakeDirectory) makeDirectory(directory);
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    const code = refusedCode(error);
    if (code === "EEXIST") return; // another process was faster
    if (code === "ENOENT")
      throw new OutboxError(
        "io",
        `cannot make database ${path}: there is no directory ${directory}`,
        "make the directory (a disk that is not mounted?), or name another database with --db",
      );
    const what = `cannot make database ${path}: ${refusedWords(error)}`;
    if (isDenied(error)) throw new OutboxError("permission", what, `check owner and mode of ${directory}`, { cause: error });
    throw new OutboxError("io", what, HINTS[code] ?? "check the disk and the path", { cause: error });
  }
  sync(directory);
}

const HINTS: Readonly<Record<string, string>> = {
  ENOSPC: "free some space",
  EROFS: "mount it for writing, or name another database with --db",
};

/** Makes the missing directories, each 0700, and syncs the one that holds each new name. */
function makeDirectory(directory: string): void {
  const missing: string[] = [];
  for (let at = directory; !exists(at); at = dirname(at)) missing.push(at);
  for (const at of missing.toReversed()) {
    try {
      mkdirSync(at, { mode: 0o700 });
    } catch (error) {
      if (refusedCode(error) === "EEXIST") continue;
      throw new OutboxError(
        isDenied(error) ? "permission" : "io",
        `cannot make directory ${at}: ${refusedWords(error)}`,
        "make it by hand, or name another database with --db",
        { cause: error },
      );
    }
    sync(dirname(at));
  }
}
