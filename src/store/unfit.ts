/** What keeps a file from being a database of ours, in words. */
import type { Stats } from "node:fs";
import type { Trouble } from "../core/errors.ts";

/** Kind, what it is, what to do. The text goes on after "database PATH". */
export type Cause = readonly [kind: Trouble, what: string, hint: string];

export const NAME_A_FILE = "name a file";

/** What something that is no regular file is, to go on after its name; null for a regular file. */
export function irregular(stats: Stats): string | null {
  if (stats.isFile()) return null;
  const what = stats.isDirectory() ? "a directory" : stats.isFIFO() ? "a pipe" : stats.isSocket() ? "a socket" : "a device";
  return `is not a regular file (it is ${what})`;
}

export function notWhole(why: string): Cause {
  return ["io", ` is not a whole outbox database: ${why}`, "restore it from a copy"];
}
