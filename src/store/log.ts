/**
 * The write-ahead log, where nobody commits any more. It begins anew with the second commit after the last reader of its pages has gone,
 * and is cut to `journal_size_limit` then. A reader that stayed while much was written, and no commit after it, would leave all of that
 * lying, for the next enqueue to copy back before it answers.
 */
import { type Handle, statement } from "./statement.ts";

/** What is left of the log when it begins anew, in bytes: `journal_size_limit` of every handle that we open. */
export const LOG_LIMIT = 4_194_304;

/**
 * Empties a log that is beyond its limit; one within it is only looked at. Where a reader is still in the way, as much as can be is copied
 * back, and the rest waits for the next time. Not within a transaction.
 */
export function trimLog(db: Handle): void {
  // The file itself, where the path is a symlink: the log lies beside it. Of a database in memory: "".
  const file =
    statement<{ name: string; file: string }>(db, `PRAGMA database_list`)
      .all({})
      .find(({ name }) => name === "main")?.file ?? "";
  if (file === "" || sizeOf(`${file}-wal`) <= LOG_LIMIT) return;
  emptyLog(db);
}

function sizeOf(file: string): number {
  try {
    return Bun.file(file).size; // 0 for what is not there
  } catch {
    return 0; // out of reach by now: the next time may tell
  }
}

/**
 * Copies the log back into the file and empties it. What was deleted is overwritten in the file only then, and stands in the log until
 * then. Not within a transaction.
 * @returns whether all of it was done; a reader may be in the way
 */
export function emptyLog(db: Handle): boolean {
  return statement<{ busy: number }>(db, `PRAGMA wal_checkpoint(TRUNCATE)`).get({})?.busy === 0;
}
