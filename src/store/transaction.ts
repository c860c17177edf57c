/**
 * One transaction of our own. The body is synchronous: an asynchronous one would have committed at its first await. (The handle's own
 * `transaction()` prepares nine statements before its first.)
 */
import type { Handle } from "./statement.ts";

/** Runs the body in one immediate transaction: all of it is committed, or nothing. */
export function immediately<T>(db: Handle, body: () => T): T {
  return within(db, "BEGIN IMMEDIATE", body);
}

/** Runs the body, which only reads, on one state of the database: no commit of another comes between its statements. */
export function atOneMoment<T>(db: Handle, body: () => T): T {
  return within(db, "BEGIN DEFERRED", body);
}

function within<T>(db: Handle, begin: "BEGIN IMMEDIATE" | "BEGIN DEFERRED", body: () => T): T {
  db.run(begin);
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
