/** The database as one process has it: the one that all share, and what may go wrong between the two. */
import type { Database } from "bun:sqlite";
import type { Process } from "./process.ts";

export interface Shared {
  readonly db: Database;
  /** How many changes were made in the transactions so far, as SQLite counts them. */
  changes: number;
  /** A transaction that writes is under way. */
  writing: boolean;
  /** How many commits changed something. */
  commits: number;
  /** Called after every transaction, and before each: nothing is written outside of one. */
  readonly look: (by: Process, when: "before" | "after") => void;
  /** Another process may have to know. */
  readonly rang: (by: Process) => void;
}

/** How many changes were made on this handle, also those that were rolled back. */
export function changesOf(db: Database): number {
  return db.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0;
}

/** Longer than a lease, and the one more that a living runner gets. */
const LATE_MS = 16_000;

/** As SQLite says it. */
function sqliteError(errno: 5 | 10 | 13): Error {
  const message = { 5: "database is locked", 10: "disk I/O error", 13: "database or disk is full" }[errno];
  return Object.assign(new Error(message), { name: "SQLiteError", errno });
}

export function handleOf(shared: Shared, process: Process): Database {
  const { db } = shared;
  const total = (): number => changesOf(db);
  let own = 0;

  const transact = <T>(begin: () => T, writes: boolean): T => {
    if (shared.writing) return begin(); // inside that of a program
    if (db.inTransaction || total() !== shared.changes) shared.look(process, "before");
    if (!writes) return begin();
    const mishap = process.mishaps.shift() ?? "none";
    if (mishap !== "none") process.troubled();
    if (mishap === "busy") throw sqliteError(5);
    if (mishap === "lost") throw sqliteError(10);
    let answer: T;
    shared.writing = true;
    process.lookMs = mishap === "slow" ? 400 : 0;
    try {
      answer = mishap === "full" ? rolledBack(begin) : begin();
    } finally {
      shared.writing = false;
      process.lookMs = 0;
      const changes = total();
      if (changes !== shared.changes && mishap !== "full") {
        shared.commits += 1;
        own += 1;
        shared.rang(process);
      }
      if (changes !== shared.changes) shared.look(process, "after");
      shared.changes = changes;
    }
    if (mishap === "late") process.freeze(LATE_MS);
    if (mishap === "kept") throw sqliteError(10);
    return answer;
  };
  const rolledBack = <T>(begin: () => T): T =>
    db.transaction((): T => {
      begin();
      throw sqliteError(13);
    })();
  const version = {
    safeIntegers: () => version,
    get: () => ({ data_version: shared.commits - own }),
  };
  return new Proxy(db, {
    get(target, name) {
      // A connection does not see its own commits as changes.
      if (name === "query") return (sql: string) => (sql === "PRAGMA data_version" ? version : target.query(sql));
      if (name === "transaction")
        return (body: () => unknown) => ({
          immediate: () => transact(() => target.transaction(body).immediate(), true),
          deferred: () => transact(() => target.transaction(body).deferred(), false),
        });
      if (name === "close") return () => {}; // it belongs to the world
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
