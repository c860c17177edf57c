/** What a file needs before it can be used, where it is not ours and up to date already: tables, a newer schema, or a refusal. */
import { OutboxError } from "../core/errors.ts";
import { copyTo } from "./backup.ts";
import { sqliteCode } from "./failed.ts";
import { bringForward, install, MIGRATIONS, parts } from "./migrate.ts";
import { look, missing, openAny, openAside, openDatabase, type OpenTerms } from "./open.ts";
import { ownership, refuseNewer } from "./ownership.ts";
import { type Handle, statement } from "./statement.ts";
import { asTrouble } from "./trouble.ts";
import { notWhole } from "./unfit.ts";

/** Brings a file of ours forward, fills an empty one, refuses every other. @throws OutboxError, or a SQLite error */
export async function prepare(db: Handle, terms: OpenTerms, steps: readonly string[] = MIGRATIONS): Promise<void> {
  const owner = ownership(db);
  if (owner.whose === "ours" && owner.version === steps.length) return;
  if (owner.whose === "foreign")
    throw new OutboxError(
      "io",
      `database ${terms.path} belongs to another program (it has tables, and none of ours)`,
      "name another file, or add the outbox tables to this one with `outbox migrate --install`",
    );
  if (owner.whose === "nobody") return fill(db, terms, steps);
  refuseNewer(owner.version, terms.path, steps.length);
  if (terms.older === "refuse")
    throw new OutboxError(
      "settings",
      `database ${terms.path} has schema ${owner.version}, this outbox needs ${steps.length}`,
      "run: outbox migrate",
    );
  db.transaction(() => {
    const found = ownership(db);
    if (found.whose !== "ours" || found.version >= steps.length) return; // another process was faster
    if (isOurOwn(db)) copyBeside(terms.path, found.version);
    bringForward(db, steps);
  }).immediate();
  await prepare(db, terms, steps);
}

/**
 * A copy of what the steps are about to change. The write lock is held meanwhile, so of several upgraders one makes it, and it
 * is the file as it was; a second handle reads it, because a handle inside a transaction cannot copy.
 */
function copyBeside(path: string, version: number): void {
  const reader = openAside(path, 30_000);
  try {
    copyTo(reader, `${path}.schema-${version}.backup`);
  } finally {
    reader.close();
  }
}

/** For this one switch SQLite does not always wait for a lock as it was told, so it is asked again. */
async function switchToWal(db: Handle, busyMs: number): Promise<void> {
  for (let left = busyMs; ; left -= WAL_AGAIN_MS) {
    try {
      statement(db, `PRAGMA journal_mode = WAL`).get({});
      return;
    } catch (error) {
      if (sqliteCode(error) !== 5 || left <= 0) throw error;
      await Bun.sleep(WAL_AGAIN_MS);
    }
  }
}
const WAL_AGAIN_MS = 20;

/** An empty file, ours to fill: WAL stays set, the tables come in one transaction. */
async function fill(db: Handle, terms: OpenTerms, steps: readonly string[]): Promise<void> {
  if (terms.missing === "refuse") throw missing(terms.path);
  if (!terms.checkPlace) await look(terms);
  await switchToWal(db, terms.busyMs);
  db.transaction(() => {
    if (ownership(db).whose === "nobody") install(db, steps);
  }).immediate();
  await prepare(db, terms, steps); // another process may have been faster, or another program
}

/** Whether only our tables stand in it; in a program's file its own copies and journal mode are its affair. */
function isOurOwn(db: Handle): boolean {
  const foreign = statement<{ n: number }>(
    db,
    `SELECT count(*) AS n FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'
       AND name NOT LIKE 'dispatch^_%' ESCAPE '^' AND name NOT IN ('status_transitions', 'admin_events')`,
  ).get({});
  return foreign?.n === 0;
}

/** `outbox migrate --install`: adds the tables to a program's database; its journal mode and modes stay. @returns the version */
export async function installInto(terms: OpenTerms): Promise<number> {
  const db = await openAny(terms);
  try {
    const owner = ownership(db);
    if (owner.whose === "ours") refuseNewer(owner.version, terms.path);
    db.transaction(() => install(db)).immediate();
    return MIGRATIONS.length;
  } catch (error) {
    throw asTrouble(error, terms.path);
  } finally {
    db.close();
  }
}

/** `outbox migrate`: brings a database forward, and looks whether every part of it is there. @throws OutboxError */
export async function bringUp(terms: OpenTerms, steps: readonly string[] = MIGRATIONS): Promise<void> {
  const db = await openDatabase({ ...terms, older: "bring forward" }, steps);
  const model = openAside(":memory:", 0);
  try {
    install(model, steps);
    const has = new Set(parts(db));
    const lost = parts(model).filter((part) => !has.has(part));
    if (lost.length === 0) return;
    const [kind, what, hint] = notWhole(`${lost.join(" and ")} ${lost.length === 1 ? "is" : "are"} missing`);
    throw new OutboxError(kind, `database ${terms.path}${what}`, hint);
  } catch (error) {
    throw asTrouble(error, terms.path);
  } finally {
    model.close();
    db.close();
  }
}
