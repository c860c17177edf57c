/** The database of a story: in memory, made once, emptied after each story, so that its statements stay prepared. */
import { Database } from "bun:sqlite";
import type { Production } from "../production.ts";
import { watch } from "./journal.ts";

// Else a handle keeps twenty statements prepared, and all processes of a world share one handle.
Database.MAX_QUERY_CACHE_SIZE = 200;

export function newDatabase({ install }: Production): Database {
  const db = new Database(":memory:", { strict: true });
  install(db);
  for (const name of tables(db)) db.run(`CREATE TEMP TABLE sim_first_${name} AS SELECT * FROM main.${name}`);
  watch(db);
  return db;
}

/** As it was before the first story. */
export function empty(db: Database): void {
  // Twice: what the triggers of the one table leave in another goes too.
  for (const name of [...tables(db), ...tables(db)]) if (hasRows(db, `main.${name}`)) db.run(`DELETE FROM main.${name}`);
  for (const name of tables(db)) if (hasRows(db, `sim_first_${name}`)) db.run(`INSERT INTO main.${name} SELECT * FROM sim_first_${name}`);
  db.run("DELETE FROM sqlite_sequence");
  db.run("DELETE FROM sim_seen");
}

/** Asked first: to delete nothing costs as much as to delete. */
function hasRows(db: Database, table: string): boolean {
  return db.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null;
}

function tables(db: Database): string[] {
  return db
    .query<{ name: string }, []>("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => name);
}
