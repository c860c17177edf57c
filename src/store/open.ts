/**
 * Opening a database: wait for locks first, then see whose file it is, and only then touch it. The usual case, a file
 * of ours that is up to date, costs no file system call of our own and no DDL.
 */
import { Database, constants } from "bun:sqlite";
import { existsSync } from "node:fs";
import { OutboxError } from "../core/errors.ts";
import { notWhole } from "./diagnosis.ts";
import { bringForward, install, MIGRATIONS, ownership, parts, refuseNewer } from "./migrate.ts";
import { type Handle, statement } from "./statement.ts";
import { asTrouble, sqliteCode } from "./trouble.ts";

export interface OpenTerms {
  /** Absolute. */
  readonly path: string;
  /** Whether a missing database is made (`enqueue`, `revive`, `run`) or is the answer "no". */
  readonly missing: "make" | "refuse";
  /** Whether its directory may be made too: only at the default place. */
  readonly mayMakeDirectory: boolean;
  /** What happens to an older schema. */
  readonly older: "bring forward" | "refuse";
  /** Whether to look where the file lies although it exists (`run`). A file that is made is always looked at. */
  readonly checkPlace: boolean;
  readonly allowNetworkFs: boolean;
  /** Only to read: not a byte of the file is changed, not even when it is closed. With `missing` and `older` refused. */
  readonly readOnly?: true;
  /** How long SQLite waits for a lock, in milliseconds. It blocks the thread. */
  readonly busyMs: number;
  /** Who runs this process. */
  readonly uid: number;
}

/** Opens, or makes, a database of ours. @throws OutboxError */
export async function openDatabase(terms: OpenTerms, steps: readonly string[] = MIGRATIONS): Promise<Handle> {
  await lookFirst(terms);
  const opened = openAs(terms) ?? (await make(terms));
  try {
    setUp(opened, terms);
    await claimFile(opened, terms, steps);
    return opened;
  } catch (error) {
    opened.close();
    throw asTrouble(error, terms.path);
  }
}

/** `outbox migrate --install`: adds the tables to a program's database; its journal mode and modes stay. @returns the version */
export async function installInto(terms: OpenTerms): Promise<number> {
  await lookFirst(terms);
  const db = tryOpen(terms.path) ?? (await make(terms));
  try {
    setUp(db, terms);
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
  const model = new Database(":memory:", { strict: true });
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

async function claimFile(db: Handle, terms: OpenTerms, steps: readonly string[]): Promise<void> {
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
  const { copyTo } = await import("./backup.ts");
  db.transaction(() => {
    const found = ownership(db);
    if (found.whose !== "ours" || found.version >= steps.length) return; // another process was faster
    if (isOurOwn(db)) copyBeside(terms.path, found.version, copyTo);
    bringForward(db, steps);
  }).immediate();
  await claimFile(db, terms, steps);
}

/**
 * A copy of what the steps are about to change. The write lock is held meanwhile, so of several upgraders one makes it, and it
 * is the file as it was; a second handle reads it, because a handle inside a transaction cannot copy.
 */
function copyBeside(path: string, version: number, copyTo: (db: Handle, target: string) => void): void {
  const reader = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    statement(reader, `PRAGMA busy_timeout = 30000`).get({});
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
  await claimFile(db, terms, steps); // another process may have been faster, or another program
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

/**
 * Before anything is read or written: what is written first must be as durable as what comes after it. Nothing of this reaches the
 * file. Only on handles that we opened, never on a program's.
 */
function setUp(db: Handle, { busyMs }: OpenTerms): void {
  statement(db, `PRAGMA busy_timeout = ${Math.round(busyMs)}`).get({});
  for (const pragma of [
    "synchronous = FULL",
    "fullfsync = ON", // macOS: its fsync does not reach the platter
    "checkpoint_fullfsync = ON",
    "journal_size_limit = 4194304",
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "secure_delete = ON",
    // A statement's own journal beyond 64 KiB would go to a file: one claim touches some 15 pages, and every later one of its
    // transaction then cost three times as much.
    "temp_store = MEMORY",
  ])
    statement(db, `PRAGMA ${pragma}`).get({});
}

function openAs({ path, readOnly }: OpenTerms): Handle | null {
  return readOnly === true ? tryOpenReadOnly(path) : tryOpen(path);
}

/**
 * Reading needs the companions of a WAL file too. Where they are not there and cannot be made, nobody can have it open to write, nor
 * has anybody left anything in them: then the file alone is all there is.
 */
function tryOpenReadOnly(path: string): Handle | null {
  const plain = attempt(path, () => {
    const db = new Database(path, { readonly: true, strict: true });
    return firstRead(db);
  });
  if (plain !== "no companions") return plain;
  const address = `file:${path.split("/").map(encodeURIComponent).join("/")}?immutable=1`;
  const alone = attempt(path, () => firstRead(new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI)));
  return alone === "no companions" ? null : alone;
}

/** Opening reads nothing yet. */
function firstRead(db: Handle): Handle {
  try {
    statement(db, `PRAGMA main.schema_version`).get({});
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function attempt(path: string, open: () => Handle): Handle | "no companions" | null {
  try {
    return open();
  } catch (error) {
    const code = sqliteCode(error);
    const companions = existsSync(`${path}-wal`);
    if (existsSync(path) && !companions && (code === 14 || code === 8)) return "no companions";
    if (code === 14 && !existsSync(path)) return null;
    throw asTrouble(error, path);
  }
}

function tryOpen(path: string): Handle | null {
  try {
    return new Database(path, { readwrite: true, create: false, strict: true });
  } catch (error) {
    if (sqliteCode(error) === 14) return null; // CANTOPEN: missing, or something stands in the way
    throw asTrouble(error, path);
  }
}

/** Nothing could be opened: either there is nothing, which may be made, or there is a reason, which is said. */
async function make(terms: OpenTerms): Promise<Handle> {
  const { checkLength, exists } = await import("./place.ts");
  const there = exists(terms.path);
  if (!there && terms.missing === "refuse") throw missing(terms.path);
  checkLength(terms.path);
  if (!there) {
    const { makeFile } = await import("./make.ts");
    await look(terms);
    makeFile(terms.path, terms.mayMakeDirectory);
    await look(terms); // its directory may be new: now its file system can be asked
  } else await look(terms);
  const opened = openAs(terms);
  if (opened === null)
    throw new OutboxError(
      exists(terms.path) ? "permission" : "io",
      `database ${terms.path} cannot be opened`,
      "check that it is a file, and owner and mode of the file and its directory",
    );
  return opened;
}

/** A command that hands in pays for no look at a file that exists; every other one rather looks than waits at a pipe. */
async function lookFirst(terms: OpenTerms): Promise<void> {
  if (terms.checkPlace) return look(terms);
  if (terms.missing === "make") return;
  const { checkRegular } = await import("./place.ts");
  checkRegular(terms.path);
}

async function look(terms: OpenTerms): Promise<void> {
  const { checkPlace } = await import("./place.ts");
  checkPlace(terms.path, terms.uid, terms.allowNetworkFs);
}

function missing(path: string): OutboxError {
  return new OutboxError("no", `no database at ${path}`, "name one with --db, or make it with the first `outbox enqueue`");
}
