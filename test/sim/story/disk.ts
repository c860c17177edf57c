/** The database as one process has it: the one that all share, and what may go wrong between the two. */
import type { Database } from "bun:sqlite";
import type { Process } from "./process.ts";
import type { Mishap } from "./words.ts";

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
  /** A transaction took long: meanwhile nobody else could write. */
  readonly stalled: () => void;
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

  /** What becomes of the transaction that is under way; null: none is of this process. */
  let mishap: Mishap | null = null;

  const lookBefore = (): void => {
    if (db.inTransaction || total() !== shared.changes) shared.look(process, "before");
  };
  const begin = (): void => {
    lookBefore();
    const next = process.mishaps.shift() ?? "none";
    if (next !== "none") process.troubled();
    if (next === "busy") throw sqliteError(5);
    if (next === "lost") throw sqliteError(10);
    db.run("BEGIN IMMEDIATE");
    mishap = next;
    shared.writing = true;
    process.lookMs = next === "slow" ? 400 : 0;
  };
  const end = (how: "COMMIT" | "ROLLBACK"): void => {
    const what = mishap;
    mishap = null;
    try {
      db.run(what === "full" ? "ROLLBACK" : how);
    } finally {
      shared.writing = false;
      process.lookMs = 0;
      if (what === "slow") shared.stalled();
      const changes = total();
      if (changes !== shared.changes && how === "COMMIT" && what !== "full") {
        shared.commits += 1;
        own += 1;
        shared.rang(process);
      }
      if (changes !== shared.changes) shared.look(process, "after");
      shared.changes = changes;
    }
    if (how === "ROLLBACK") return;
    if (what === "full") throw sqliteError(13);
    if (what === "late") process.freeze(LATE_MS);
    if (what === "kept") throw sqliteError(10);
  };
  const whole = <T>(body: () => T): T => {
    if (shared.writing) return db.transaction(body).immediate(); // inside that of a program
    begin();
    let answer: T;
    try {
      answer = body();
    } catch (error) {
      end("ROLLBACK");
      throw error;
    }
    end("COMMIT");
    return answer;
  };
  const reading = <T>(body: () => T): T => {
    if (!shared.writing) lookBefore();
    return db.transaction(body).deferred();
  };
  const run = (sql: string, ...values: []): unknown => {
    if (sql === "BEGIN IMMEDIATE") return begin();
    if (mishap !== null && (sql === "COMMIT" || sql === "ROLLBACK")) return end(sql);
    return db.run(sql, ...values);
  };
  const version = {
    safeIntegers: () => version,
    get: () => ({ data_version: shared.commits - own }),
  };
  return new Proxy(db, {
    get(target, name) {
      // A connection does not see its own commits as changes.
      if (name === "query") return (sql: string) => (sql === "PRAGMA data_version" ? version : target.query(sql));
      if (name === "run") return run;
      if (name === "transaction") return (body: () => unknown) => ({ immediate: () => whole(body), deferred: () => reading(body) });
      if (name === "close") return () => {}; // it belongs to the world
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
