/** The schema: its numbered steps, and bringing it forward. Forward only, only ever adding. */
import { invariant, OutboxError } from "../core/errors.ts";
import outbox from "./migrations/0001_outbox.sql" with { type: "text" };
import turns from "./migrations/0002_turns.sql" with { type: "text" };
import figures from "./migrations/0003_figures.sql" with { type: "text" };
import inbox from "./migrations/0004_inbox.sql" with { type: "text" };
import door from "./migrations/0005_door.sql" with { type: "text" };
import { ownership } from "./ownership.ts";
import { type Handle, statement } from "./statement.ts";

/** Step n takes a database from version n to n + 1. Frozen once released. */
export const MIGRATIONS: readonly string[] = [outbox, turns, figures, inbox, door];

/**
 * Adds the tables to a database that has none of them, in the caller's transaction. Nothing else of the file changes.
 * @throws OutboxError `no`, naming each of our names that is taken, or the encoding
 */
export function install(db: Handle, steps: readonly string[] = MIGRATIONS): void {
  if (has(db, ["dispatch_schema"]).length > 0)
    throw new OutboxError("no", "the outbox tables are installed already", "bring an older schema forward with `outbox migrate`");
  const taken = has(db, namesIn(steps));
  if (taken.length > 0)
    throw new OutboxError("no", `the database has ${taken.join(" and ")} already, and not from outbox`, "use another database file");
  // Our CHECKs count bytes of UTF-8: the 32 digits of an id would be 64.
  const encoding = statement<{ encoding: string }>(db, `PRAGMA encoding`).get({})?.encoding ?? "";
  if (encoding !== "UTF-8")
    throw new OutboxError(
      "no",
      `the database keeps its text in ${encoding}, and the outbox tables need UTF-8`,
      "use another database file",
    );
  for (const step of steps) db.run(step);
  setVersion(db, steps.length);
}

/** Brings an older schema forward, in the caller's transaction. */
export function bringForward(db: Handle, steps: readonly string[] = MIGRATIONS): void {
  const owner = ownership(db);
  invariant(owner.whose === "ours", "bringForward on a file that is not ours");
  for (const [index, step] of steps.entries()) {
    if (index < owner.version) continue;
    db.run(step);
    setVersion(db, index + 1);
  }
}

function setVersion(db: Handle, version: number): void {
  statement(db, `UPDATE main.dispatch_schema SET version = $version`).run({ version });
}

/** Everything that the schema consists of: tables, indexes, triggers and views by their name, columns as `table.column`. */
export function parts(db: Handle): string[] {
  return statement<{ part: string }>(
    db,
    `SELECT name AS part FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'
     UNION ALL
     SELECT owner.name || '.' || member.name FROM main.sqlite_schema AS owner JOIN pragma_table_info(owner.name, 'main') AS member
     WHERE owner.type = 'table' ORDER BY part`,
  )
    .all({})
    .map(({ part }) => part);
}

/** The names of everything that the steps create: tables, indexes and triggers of a schema share them with those of the program. */
function namesIn(steps: readonly string[]): string[] {
  return steps.flatMap((step) =>
    [...step.matchAll(/^CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER|VIEW) main\.(\w+)/gm)].map((match) => match[1] ?? ""),
  );
}

function has(db: Handle, names: readonly string[]): string[] {
  return statement<{ name: string }>(
    db,
    `SELECT name FROM main.sqlite_schema WHERE name COLLATE NOCASE IN (SELECT value FROM json_each($names)) ORDER BY name`,
  )
    .all({ names: JSON.stringify(names) })
    .map((row) => row.name);
}
