/** Which settings hold for a command, and which database it works on. The one place that knows the order of precedence. */
import { OutboxError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { homeOf } from "../settings/locate.ts";
import { readStrictly } from "../settings/read.ts";
import type { Choice, Loaded, Settings } from "../settings/settings.ts";
import type { OpenTerms } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { pathFrom } from "./input.ts";
import type { Io } from "./io.ts";
import type { Args } from "./parse.ts";

/** One-shot commands wait this long for a lock (DESIGN section 4). */
const BUSY_MS = 30_000;

/** What the settings file is looked for with. */
export function choiceOf(args: Args, io: Io): Choice {
  return { config: args.text("config"), env: io.env, uid: io.uid };
}

/** Settings for every command but `enqueue` and `revive`: a mistake is told with line and column. */
export async function carefulSettings(args: Args, io: Io): Promise<Loaded> {
  return readStrictly(choiceOf(args, io));
}

export interface Database {
  /** Absolute. */
  readonly path: string;
  /** Whether a missing directory may be made: only at the default place. */
  readonly isDefault: boolean;
}

/** `--db` or `--source`, else `OUTBOX_DB`, else the settings. @throws OutboxError `usage` for an unknown source */
export function databaseOf(args: Args, io: Io, settings: Settings): Database {
  const named = namedDatabase(args, io);
  if (named !== null) return { path: named, isDefault: false };
  const source = args.text("source");
  if (source === undefined) return { path: settings.database, isDefault: settings.databaseIsDefault };
  const path = settings.sources.get(source);
  if (path !== undefined) return { path, isDefault: source === "default" && settings.databaseIsDefault };
  const known = [...settings.sources.keys()];
  const meant = nearest(source, known);
  throw new OutboxError(
    "usage",
    `unknown source "${source}"`,
    meant === null ? `the settings name ${known.join(", ")}` : `did you mean ${meant}?`,
  );
}

/** The database that flag or environment name by its path; null when the settings decide. An empty variable counts as unset. */
export function namedDatabase(args: Args, io: Io): string | null {
  const flag = args.text("db");
  if (flag !== undefined) return databasePath(io, "--db", flag);
  const variable = io.env["OUTBOX_DB"];
  return args.text("source") !== undefined || variable === undefined || variable === "" ? null : databasePath(io, "OUTBOX_DB", variable);
}

/** @throws OutboxError `usage` for what SQLite and other programs take for something else than the name of a file */
function databasePath(io: Io, from: string, text: string): string {
  const what =
    text === ":memory:"
      ? "a database in memory, which nobody could read again"
      : /^file:|^[a-z][a-z0-9+.-]*:\/\//i.test(text)
        ? "an address"
        : null;
  if (what === null) return pathFrom(io, text);
  throw new OutboxError("usage", `${from} ${text} is ${what}`, `name a file; one that is really called so is ./${text}`);
}

export interface NamedDatabase extends Database {
  /** As the settings call it; what they do not name is called by its path, so that two of them stay two to whoever watches. */
  readonly name: string;
}

/** What `run` drains: the one that a flag names, else all sources, with `OUTBOX_DB` in the place of `database`. Each file once. */
export function sourcesOf(args: Args, io: Io, settings: Settings): readonly NamedDatabase[] {
  const database = databaseOf(args, io, settings);
  if (args.text("db") !== undefined) return [{ name: nameIn(settings, database.path) ?? database.path, ...database }];
  const first = { name: args.text("source") ?? "default", ...database };
  if (args.text("source") !== undefined) return [first];
  const others = [...settings.sources].filter(([name]) => name !== "default").map(([name, path]) => ({ name, path, isDefault: false }));
  const seen = new Set<string>();
  return [first, ...others].filter(({ path }) => {
    const file = identity(path);
    return seen.has(file) ? false : seen.add(file);
  });
}

function nameIn({ sources }: Settings, path: string): string | undefined {
  return [...sources].find(([, each]) => identity(each) === identity(path))?.[0];
}

/** One file under two names is one: two handles of two names would be two runners in one process. Also one that is not made yet. */
function identity(path: string): string {
  const file = inode(path);
  if (file !== null) return file;
  const { basename, dirname } = process.getBuiltinModule("node:path");
  const directory = inode(dirname(path));
  return directory === null ? path : `${directory}/${basename(path)}`;
}

function inode(path: string): string | null {
  try {
    const stat = process.getBuiltinModule("node:fs").statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
  } catch {
    return null; // out of reach: opening it says why
  }
}

/** Commands run in the user's home, else in `/`: never where somebody happened to start the runner. */
export function workplace(io: Io): string {
  const path = homeOf(io.env);
  return inode(path) !== null && process.getBuiltinModule("node:fs").statSync(path).isDirectory() ? path : "/";
}

/** How a command that works on an existing database opens it: it never makes one, and never changes its schema. */
export function existing(database: Database, io: Io): OpenTerms {
  return {
    path: database.path,
    missing: "refuse",
    mayMakeDirectory: false,
    older: "refuse",
    checkPlace: false,
    allowNetworkFs: true,
    busyMs: BUSY_MS,
    uid: io.uid,
  };
}

/** How a command that only looks opens it, where a runner's own look at the place holds too. */
export function lookedAt(database: Database, io: Io, allowNetworkFs: boolean): OpenTerms {
  return { ...existing(database, io), checkPlace: true, allowNetworkFs, readOnly: true };
}

/** How a command that hands messages in opens it: made when missing, brought forward when older. */
export function made(database: Database, io: Io, allowNetworkFs: boolean): OpenTerms {
  return { ...existing(database, io), missing: "make", mayMakeDirectory: database.isDefault, older: "bring forward", allowNetworkFs };
}

/** Opens, does the work, closes whatever happened. */
export async function withStore<T>(terms: OpenTerms, io: Io, work: (store: Store) => Promise<T>): Promise<T> {
  const { openStore } = await import("../store/store.ts");
  const store = await openStore(terms, io);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The existing database of a command that reads or steps in. */
export async function onDatabase<T>(args: Args, io: Io, work: (store: Store) => Promise<T>): Promise<T> {
  const { settings } = await carefulSettings(args, io);
  return withStore(existing(databaseOf(args, io, settings), io), io, work);
}
