/** One write transaction of our own. */
import type { Handle } from "./statement.ts";

/**
 * Runs the body in one immediate transaction: all of it is committed, or nothing. It is synchronous: an asynchronous one would have
 * committed at its first await. (The handle's own `transaction()` prepares nine statements before its first.)
 */
export function immediately<T>(db: Handle, body: () => T): T {
  db.run("BEGIN IMMEDIATE");
  try {
    const answer = body();
    db.run("COMMIT");
    return answer;
  } catch (error) {
    // After some errors, a full disk among them, SQLite has taken it back already.
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}
