/**
 * Opening a database: wait for locks first, then see whose file it is, and only then touch it. The usual case, a file
 * of ours that is up to date, costs no file system call of our own and no DDL; what every other case needs is loaded for it alone.
 */
import { Database, constants } from "bun:sqlite";
import { OutboxError } from "../core/errors.ts";
import { libc } from "../libc.ts";
import { sqliteCode, troubleOf } from "./failed.ts";
import type { Handle } from "./statement.ts";
import { SCHEMA_VERSION, versionOf } from "./version.ts";

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

/**
 * Opens, or makes, a database of ours.
 * @param steps the schema to bring it to; this binary's unless given
 * @throws OutboxError
 */
export async function openDatabase(terms: OpenTerms, steps?: readonly string[]): Promise<Handle> {
  const db = await openAny(terms);
  try {
    if (versionOf(db) !== (steps?.length ?? SCHEMA_VERSION)) {
      const { prepare } = await import("./prepare.ts");
      await prepare(db, terms, steps);
    }
    return db;
  } catch (error) {
    db.close();
    throw await troubleOf(error, terms.path);
  }
}

/** Opens, or makes, the file, whoever's it is, and sets the handle up. @throws OutboxError */
export async function openAny(terms: OpenTerms): Promise<Handle> {
  await lookFirst(terms);
  const db = (holdsSomething(terms.path) ? await openAs(terms) : null) ?? (await make(terms));
  try {
    setUp(db, terms);
    return db;
  } catch (error) {
    db.close();
    throw await troubleOf(error, terms.path);
  }
}

/** A second handle, for a look while the first one holds the write lock; or one of an empty database in memory. */
export function openAside(path: string, busyMs: number): Handle {
  const db =
    path === ":memory:" ? new Database(path, { strict: true }) : new Database(path, { readwrite: true, create: false, strict: true });
  db.run(`PRAGMA busy_timeout = ${busyMs}`);
  return db;
}

/**
 * Before anything is read or written: what is written first must be as durable as what comes after it. Nothing of this reaches the
 * file. Only on handles that we opened, never on a program's.
 */
function setUp(db: Handle, { busyMs }: OpenTerms): void {
  // One call for all of them: each of its own would cost more than what it sets.
  db.run(`PRAGMA busy_timeout = ${Math.round(busyMs)};${PRAGMAS}`);
}
const PRAGMAS = [
  "synchronous = FULL",
  "fullfsync = ON", // macOS: its fsync does not reach the platter
  "checkpoint_fullfsync = ON",
  "journal_size_limit = 4194304", // `LOG_LIMIT` of log.ts, which an enqueue does not load
  "foreign_keys = ON",
  "trusted_schema = OFF",
  "secure_delete = ON",
  // A statement's own journal beyond 64 KiB would go to a file: one claim touches some 15 pages, and every later one of its
  // transaction then cost three times as much.
  "temp_store = MEMORY",
]
  .map((pragma) => `PRAGMA ${pragma};`)
  .join("");

/**
 * A missing file is not opened: SQLite, refused, at once asks again only to read, and if another process makes the file between the
 * two, nothing can be written through that handle. What cannot even be asked for is told on that way, too.
 */
function holdsSomething(path: string): boolean {
  try {
    return Bun.file(path).size > 0; // 0 for what is not there
  } catch {
    return false; // longer than any path
  }
}

async function openAs({ path, readOnly }: OpenTerms): Promise<Handle | null> {
  return readOnly === true ? tryOpenReadOnly(path) : tryOpen(path);
}

/**
 * Reading needs the companions of a WAL file too. Where they are not there and cannot be made, nobody can have it open to write, nor
 * has anybody left anything in them: then the file alone is all there is.
 */
async function tryOpenReadOnly(path: string): Promise<Handle | null> {
  const plain = await attempt(path, () => {
    const db = new Database(path, { readonly: true, strict: true });
    return firstRead(db);
  });
  if (plain !== "no companions") return plain;
  const address = `file:${path.split("/").map(encodeURIComponent).join("/")}?immutable=1`;
  const alone = await attempt(path, () => firstRead(new Database(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI)));
  return alone === "no companions" ? null : alone;
}

/** Opening reads nothing yet. */
function firstRead(db: Handle): Handle {
  try {
    db.query("PRAGMA main.schema_version").get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

async function attempt(path: string, open: () => Handle): Promise<Handle | "no companions" | null> {
  try {
    return open();
  } catch (error) {
    const code = sqliteCode(error);
    const { existsSync } = await import("node:fs");
    const companions = existsSync(`${path}-wal`);
    if (existsSync(path) && !companions && (code === 14 || code === 8)) return "no companions";
    if (code === 14 && !existsSync(path)) return null;
    throw await troubleOf(error, path);
  }
}

async function tryOpen(path: string): Promise<Handle | null> {
  try {
    return new Database(path, { readwrite: true, create: false, strict: true });
  } catch (error) {
    if (sqliteCode(error) === 14) return null; // CANTOPEN: missing, or something stands in the way
    throw await troubleOf(error, path);
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
  const opened = await openAs(terms);
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
  if (terms.missing === "make" || isRegular(terms.path)) return;
  const { checkRegular } = await import("./place.ts");
  checkRegular(terms.path);
}

/** The usual answer, without node:fs; whatever else it is, `place.ts` says. */
function isRegular(path: string): boolean {
  const facts = path.includes("\0") ? null : libc()?.facts(path, "follow");
  return typeof facts === "object" && facts?.kind === "file";
}

/** Looks where the file lies. @throws OutboxError */
export async function look(terms: OpenTerms): Promise<void> {
  const { checkPlace } = await import("./place.ts");
  checkPlace(terms.path, terms.uid, terms.allowNetworkFs);
}

export function missing(path: string): OutboxError {
  return new OutboxError("no", `no database at ${path}`, "name one with --db, or make it with the first `outbox enqueue`");
}
