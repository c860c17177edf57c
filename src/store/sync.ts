/** Making a file, or the names in a directory, outlive a power loss. */
import { closeSync, fsyncSync, openSync } from "node:fs";

/** @param path a file that SQLite does not have open here: closing another descriptor of it would drop its locks; or a directory */
export function sync(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
