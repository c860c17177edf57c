import { Database } from "bun:sqlite";
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { OutboxError } from "../../src/core/errors.ts";
import { bringForward, install, MIGRATIONS } from "../../src/store/migrate.ts";
import { ownership } from "../../src/store/ownership.ts";
import { openDatabase, type OpenTerms } from "../../src/store/open.ts";
import { installInto } from "../../src/store/prepare.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { checkPlace } from "../../src/store/place.ts";
import type { Handle } from "../../src/store/statement.ts";
import { terms } from "../fixtures/store/terms.ts";
import { count, enter, scratch, take, T0 } from "../fixtures/world.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
/** A schema after the released one. */
const NEXT = "ALTER TABLE main.dispatch_outbox ADD COLUMN note TEXT; CREATE TABLE main.dispatch_notes (note TEXT) STRICT;";

/** Kind and words of the refusal. */
async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
  } catch (error) {
    if (error instanceof OutboxError) return `${error.kind}: ${error.message}; ${error.hint}`;
    throw error;
  }
  return "accepted";
}

const open = (path: string, otherwise: Partial<OpenTerms> = {}, steps?: readonly string[]): Promise<Handle> =>
  openDatabase(terms(path, otherwise), steps);

/** A file of another program. */
function foreign(path: string, more = ""): string {
  using db = new Database(path);
  db.run(`PRAGMA user_version = 7; CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER); INSERT INTO orders VALUES (1, 0); ${more}`);
  return path;
}

async function ours(path: string, work: (db: Handle) => unknown = () => undefined, steps?: readonly string[]): Promise<string> {
  const db = await open(path, {}, steps);
  work(db);
  db.close();
  return path;
}

/** The opener in one file, because twenty processes would each read and transpile all of ours. */
async function bundled(): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, "../fixtures/store/opener.ts")],
    target: "bun",
    outdir: build.path,
  });
  return outputs[0]?.path ?? "";
}
const build = scratch();
afterAll(() => build[Symbol.dispose]());

/** Processes that all open the database and enter one dispatch. @returns what those that failed said */
async function openers(processes: number, path: string, steps: readonly string[] = []): Promise<string[]> {
  const opener = await bundled();
  const started = Array.from({ length: processes }, () =>
    Bun.spawn([process.execPath, opener, path, JSON.stringify(steps)], {
      stdout: "ignore",
      stderr: "pipe",
    }),
  );
  const said = await Promise.all(started.map(async (one) => ({ text: await new Response(one.stderr).text(), code: await one.exited })));
  return said.filter(({ text, code }) => code !== 0 || text !== "").map(({ text, code }) => `${code}: ${text}`);
}

/** What the work leaves of the file, compared byte by byte. */
async function untouched(path: string, work: () => unknown): Promise<void> {
  const before = readFileSync(path);
  await work();
  expect(readFileSync(path).equals(before)).toBe(true);
}

describe("a database that is made", () => {
  test("is 0600 with its companions, in a 0700 directory, whatever the umask", async () => {
    using dir = scratch();
    const old = process.umask(0);
    try {
      const path = join(dir.path, "state", "outbox", "outbox.db");
      const db = await open(path, { mayMakeDirectory: true });
      enter(db);
      expect([path, `${path}-wal`, `${path}-shm`].map(mode)).toEqual(["600", "600", "600"]);
      expect([join(dir.path, "state"), join(dir.path, "state", "outbox")].map(mode)).toEqual(["700", "700"]);
      db.close();
    } finally {
      process.umask(old);
    }
  });

  test("has the schema, WAL and the settings of its handle", async () => {
    using dir = scratch();
    const db = await open(dir.file("a.db"), { busyMs: 1_234 });
    const pragma = (name: string): unknown => db.query(`PRAGMA ${name}`).values()[0]?.[0];
    expect(ownership(db)).toEqual({ whose: "ours", version: SCHEMA_VERSION });
    expect(
      Object.fromEntries(
        [
          "journal_mode",
          "synchronous",
          "foreign_keys",
          "trusted_schema",
          "secure_delete",
          "fullfsync",
          "journal_size_limit",
          "busy_timeout",
          "user_version",
        ].map((name) => [name, pragma(name)]),
      ),
    ).toEqual({
      journal_mode: "wal",
      synchronous: 2,
      foreign_keys: 1,
      trusted_schema: 0,
      secure_delete: 1,
      fullfsync: 1,
      journal_size_limit: 4_194_304,
      busy_timeout: 1_234,
      user_version: 0,
    });
    db.close();
  });

  test("is as durable from its first write on as ever after", async () => {
    using dir = scratch();
    const spies = [spyOn(Database.prototype, "query"), spyOn(Database.prototype, "run")];
    const path = dir.file("a.db");
    try {
      (await open(path)).close();
      const said = spies
        .flatMap(({ mock }) => mock.calls.map(([sql], at) => ({ sql, order: mock.invocationCallOrder[at] ?? 0 })))
        .toSorted((one, other) => one.order - other.order)
        .flatMap(({ sql }) => sql.split(";").map((statement) => statement.trim()))
        .filter((sql) => sql !== "");
      const written = said.findIndex((sql) => /journal_mode|CREATE|INSERT|BEGIN/.test(sql));
      expect(written).toBeGreaterThan(0);
      expect(said[0]).toBe("PRAGMA busy_timeout = 30000");
      expect(said.slice(0, written)).toContainValues(["PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON"]);
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  });

  test("is made from an empty file too", async () => {
    using dir = scratch();
    writeFileSync(dir.file("a.db"), "");
    await ours(dir.file("a.db"), enter);
    expect(statSync(dir.file("a.db")).size).toBeGreaterThan(0);
  });

  test("is made once when twenty processes come at the same time", async () => {
    using dir = scratch();
    const path = dir.file("a.db");
    expect(await openers(20, path)).toEqual([]);
    await ours(path, (db) => expect([count(db, "dispatch_outbox"), count(db, "dispatch_schema")]).toEqual([20, 1]));
  }, 30_000);
});

describe("a missing database", () => {
  test("is the answer no for a command that makes none, and stays missing", async () => {
    using dir = scratch();
    const path = dir.file("a.db");
    expect(await refusal(() => open(path, { missing: "refuse" }))).toBe(
      `no: no database at ${path}; name one with --db, or make it with the first \`outbox enqueue\``,
    );
    writeFileSync(dir.file("empty.db"), "");
    expect(await refusal(() => open(dir.file("empty.db"), { missing: "refuse" }))).toStartWith("no: no database at ");
    expect([readdirSync(dir.path), statSync(dir.file("empty.db")).size]).toEqual([["empty.db"], 0]);
    expect(await refusal(() => open(dir.file("no/a.db"), { missing: "refuse" }))).toStartWith("no: no database at ");
  });

  test("in a missing directory is refused except at the default place", async () => {
    using dir = scratch();
    expect(await refusal(() => open(dir.file("disk/a.db")))).toStartWith(
      `io: cannot make database ${dir.file("disk/a.db")}: there is no directory`,
    );
    expect(existsSync(dir.file("disk"))).toBe(false);
    (await open(dir.file("disk/a.db"), { mayMakeDirectory: true })).close();
    expect(existsSync(dir.file("disk/a.db"))).toBe(true);
  });

  test.each([
    ["a name of 256 bytes", "n".repeat(256)],
    ["a path of 5,000 bytes", "a/".repeat(2_500)],
  ])("with %s is refused, whatever the command makes", async (_, name) => {
    using dir = scratch();
    for (const missing of ["make", "refuse"] as const)
      expect(await refusal(() => open(dir.file(name), { missing }))).toContain(
        "a name in it is too long; check the path and its directories",
      );
    expect(readdirSync(dir.path)).toEqual([]);
  });

  test("whose directory is a file is refused", async () => {
    using dir = scratch();
    writeFileSync(dir.file("file"), "");
    expect(await refusal(() => open(dir.file("file/a.db"), { mayMakeDirectory: true }))).toStartWith("io: ");
  });
});

describe("what is no database of ours", () => {
  test.each(["delete", "wal"])("another program's file (journal mode %s) is refused and stays as it is", async (journal) => {
    using dir = scratch();
    const path = foreign(dir.file("shop.db"), `PRAGMA journal_mode = ${journal};`);
    await untouched(path, async () => {
      for (const missing of ["make", "refuse"] as const)
        expect(await refusal(() => open(path, { missing }))).toBe(
          `io: database ${path} belongs to another program (it has tables, and none of ours); name another file, or add the outbox tables to this one with \`outbox migrate --install\``,
        );
    });
    expect(readdirSync(dir.path)).toEqual(["shop.db"]);
  });

  test("a file that is not SQLite is refused and stays as it is", async () => {
    using dir = scratch();
    const path = dir.file("notes.txt");
    writeFileSync(path, "dear diary, ".repeat(1_000));
    await untouched(path, async () => expect(await refusal(() => open(path))).toMatch(/^io: database .*: it is not a database/));
  });

  test("a truncated database is refused as corrupt", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), enter);
    writeFileSync(path, readFileSync(path).subarray(0, 6_000));
    await untouched(path, async () => expect(await refusal(() => open(path))).toMatch(/^io: database .*: it is corrupt/));
  });

  test("a directory is refused", async () => {
    using dir = scratch();
    for (const missing of ["make", "refuse"] as const)
      expect(await refusal(() => open(dir.path, { missing }))).toBe(
        `io: database ${dir.path} is not a regular file (it is a directory); name a file`,
      );
  });

  test("a database with our mark but no version is refused", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), (db) => db.run("DELETE FROM dispatch_schema"));
    expect(await refusal(() => open(path))).toEndWith(
      "is not a whole outbox database: dispatch_schema holds no version; restore it from a copy",
    );
  });

  test("a locked database is busy once the wait is over", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"));
    using other = new Database(path);
    other.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    expect(await refusal(() => open(path, { busyMs: 10 }))).toMatch(/^busy: database .*; try again$/);
  });
});

describe("where a database may lie", () => {
  const looked = { checkPlace: true };
  test("not behind a link that leads nowhere", async () => {
    using dir = scratch();
    symlinkSync(dir.file("gone.db"), dir.file("a.db"));
    for (const missing of ["make", "refuse"] as const)
      expect(await refusal(() => open(dir.file("a.db"), { missing }))).toMatch(/^permission: database .* is a symlink to nowhere/);
    expect(existsSync(dir.file("gone.db"))).toBe(false);
  });

  test("not behind a link in a directory that others may write", async () => {
    using dir = scratch();
    await ours(dir.file("real.db"));
    mkdirSync(dir.file("open"));
    symlinkSync(dir.file("real.db"), dir.file("open/a.db"));
    (await open(dir.file("open/a.db"), looked)).close();
    for (const bits of [0o777, 0o775, 0o773]) {
      chmodSync(dir.file("open"), bits);
      expect(await refusal(() => open(dir.file("open/a.db"), looked))).toMatch(
        /^permission: database .* is a symlink in a directory that others may write/,
      );
    }
  });

  test("behind a link of the caller's own in a sticky directory, for nobody else can take it away", async () => {
    using dir = scratch();
    await ours(dir.file("real.db"));
    mkdirSync(dir.file("sticky"));
    chmodSync(dir.file("sticky"), 0o1777);
    const link = dir.file("sticky/a.db");
    symlinkSync(dir.file("real.db"), link);
    (await open(link, looked)).close();
    // Of somebody else: who is not root has nobody to give it to, and is taken for another instead.
    const uid = process.getuid?.() ?? 0;
    if (uid === 0) lchownSync(link, 4_711, 4_711);
    expect(await refusal(() => open(link, { ...looked, uid: uid === 0 ? 0 : uid + 1 }))).toContain("that others may write");
  });

  test.each([
    ["a link that a link of the caller's leads to", "own/to-link.db", "wide/link.db"],
    ["a link among the directories", "wide/to-dir/real.db", "wide/to-dir"],
    ["a link among the directories, when the file is to be made", "wide/to-dir/new.db", "wide/to-dir"],
    ["a link that a directory of the caller's leads to", "own/to-wide/new.db", "wide/to-dir"],
    ["a link that is left again", "wide/to-dir/../data/real.db", "wide/to-dir"],
  ])("not behind %s, where others may write", async (_, name, planted) => {
    using dir = scratch();
    for (const each of ["own", "wide", "data"]) mkdirSync(dir.file(each));
    await ours(dir.file("data/real.db"));
    symlinkSync(dir.file("data/real.db"), dir.file("wide/link.db"));
    symlinkSync("../data", dir.file("wide/to-dir"));
    symlinkSync("../wide/link.db", dir.file("own/to-link.db"));
    symlinkSync("../wide/to-dir", dir.file("own/to-wide"));
    (await open(`${dir.path}/${name}`, looked)).close();
    rmSync(dir.file("data/new.db"), { force: true });
    chmodSync(dir.file("wide"), 0o777);
    expect(await refusal(() => open(`${dir.path}/${name}`, looked))).toBe(
      `permission: database ${dir.path}/${name} lies behind ${dir.file(planted)}, a symlink in a directory that others may write; name the real path, or keep others out of ${dir.file("wide")}`,
    );
    expect(existsSync(dir.file("data/new.db"))).toBe(false);
  });

  test.each(["own/circle", "own/circle/a.db", "own/gone/a.db", "own/gone.db"])(
    "not at %s, behind a link that leads nowhere",
    async (name) => {
      using dir = scratch();
      mkdirSync(dir.file("own"));
      symlinkSync("circle", dir.file("own/circle"));
      symlinkSync("nothing", dir.file("own/gone"));
      symlinkSync("../nothing/a.db", dir.file("own/gone.db"));
      expect(await refusal(() => open(dir.file(name)))).toMatch(/^permission: database .* is a symlink to nowhere/);
    },
  );

  test.each(["-wal", "-shm", "-journal"])("not beside a planted link %s, also where the database itself is a link", async (companion) => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"));
    mkdirSync(dir.file("d"));
    symlinkSync(path, dir.file("d/link.db"));
    symlinkSync(dir.file("victim"), `${path}${companion}`);
    for (const name of [path, dir.file("d/link.db")])
      expect(await refusal(() => open(name, looked))).toBe(
        `permission: ${path}${companion} is a symlink; remove it; SQLite makes this file itself`,
      );
    expect(existsSync(dir.file("victim"))).toBe(false);
  });

  test("not beside a planted link, when it is to be made", async () => {
    using dir = scratch();
    symlinkSync(dir.file("victim"), dir.file("a.db-wal"));
    expect(await refusal(() => open(dir.file("a.db")))).toStartWith("permission: ");
    expect(readdirSync(dir.path)).toEqual(["a.db-wal"]);
  });

  test("not under another user's name, also for root", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"));
    const uid = statSync(path).uid;
    expect(await refusal(() => open(path, { ...looked, uid: uid + 1 }))).toBe(
      `permission: database ${path} belongs to another user (uid ${uid}; this is uid ${uid + 1}); run outbox as that user, or name another database with --db`,
    );
    expect(await refusal(() => open(path, { uid: uid + 1 }))).toBe("accepted"); // it is looked at when made, and by `run`
  });

  test.each([
    ["NFS", 0x6969],
    ["CIFS", 0xff534d42],
    ["CIFS", 0xff534d42 | 0], // the kernel's number read as a signed one
    ["SMB", 0xfe534d42],
    ["9P", 0x01021997],
    ["FUSE", 0x65735546],
  ])("not on %s (%p), unless told", async (name, type) => {
    using dir = scratch();
    const look = (allowed: boolean, path: string) => () => checkPlace(path, process.getuid?.() ?? 0, allowed, () => type);
    for (const path of [await ours(dir.file("a.db")), dir.file("new.db")]) {
      expect(await refusal(look(false, path))).toStartWith(`io: database ${path} lies on a network file system (${name})`);
      expect(await refusal(look(true, path))).toBe("accepted");
    }
    expect(await refusal(look(false, dir.file("no/new.db")))).toBe("accepted"); // nothing to ask yet
  });

  test.each([0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0x01021994, 0x794c7630, 0x1badface])(
    "a local file system (%p) is accepted",
    async (type) => {
      using dir = scratch();
      expect(await refusal(() => checkPlace(dir.file("a.db"), process.getuid?.() ?? 0, false, () => type))).toBe("accepted");
    },
  );
});

describe("install() in a program's own database", () => {
  test("adds the tables and changes nothing else", () => {
    using dir = scratch();
    const path = foreign(dir.file("shop.db"));
    chmodSync(path, 0o640);
    using db = new Database(path);
    install(db);
    expect(["journal_mode", "user_version", "synchronous"].map((name) => db.query(`PRAGMA ${name}`).values()[0]?.[0])).toEqual([
      "delete",
      7,
      2,
    ]);
    expect(db.query("SELECT * FROM orders").values()).toEqual([[1, 0]]);
    expect(mode(path)).toBe("640");
    expect(enter(db).seq).toBe(1);
  });

  test("is a part of the caller's transaction", () => {
    using db = new Database(":memory:");
    db.run("CREATE TABLE orders (id)");
    expect(() =>
      db.transaction(() => {
        install(db);
        enter(db);
        throw new Error("changed its mind");
      })(),
    ).toThrow("changed its mind");
    expect(db.query("SELECT name FROM sqlite_schema").values()).toEqual([["orders"]]);
  });

  test.each([
    ["CREATE TABLE status_transitions (id)", "status_transitions"],
    ["CREATE TABLE Admin_Events (id)", "Admin_Events"],
    ["CREATE VIEW dispatch_outbox AS SELECT 1", "dispatch_outbox"],
    ["CREATE TABLE t (a); CREATE INDEX dispatch_due ON t (a)", "dispatch_due"],
    ["CREATE TABLE t (a); CREATE TRIGGER dispatch_moves AFTER INSERT ON t BEGIN SELECT 1; END", "dispatch_moves"],
    ["CREATE TABLE admin_events (id); CREATE TABLE dispatch_edges (id)", "admin_events and dispatch_edges"],
  ])("refuses by name what is taken: %s", async (sql, named) => {
    using db = new Database(":memory:");
    db.run(sql);
    const before = db.query("SELECT * FROM sqlite_schema").all();
    expect(await refusal(() => install(db))).toBe(`no: the database has ${named} already, and not from outbox; use another database file`);
    expect(db.query("SELECT * FROM sqlite_schema").all()).toEqual(before);
  });

  test.each([["UTF-16le"], ["UTF-16be"]])(
    "refuses a database that keeps its text in %s: the bytes that our CHECKs count are others",
    async (encoding) => {
      using dir = scratch();
      const path = dir.file("shop.db");
      for (const sql of ["CREATE TABLE orders (id)", ""]) {
        using db = new Database(path);
        db.run(`PRAGMA encoding = '${encoding}'`);
        db.run(sql === "" ? "DROP TABLE orders" : sql);
        const said = `the database keeps its text in ${encoding}, and the outbox tables need UTF-8; use another database file`;
        expect(await refusal(() => install(db))).toBe(`no: ${said}`);
        expect(await refusal(() => installInto(terms(path)))).toBe(`no: ${said}`);
      }
      expect(await refusal(() => openDatabase(terms(path)))).toContain("need UTF-8");
    },
  );

  test("refuses a second time", async () => {
    using db = new Database(":memory:");
    install(db);
    expect(await refusal(() => install(db))).toStartWith("no: the outbox tables are installed already");
  });

  test("writes the version of its last step", () => {
    using db = new Database(":memory:");
    install(db, [...MIGRATIONS, NEXT]);
    expect(ownership(db)).toEqual({ whose: "ours", version: MIGRATIONS.length + 1 });
  });

  test("does not take the caller's TEMP tables for its own", () => {
    using db = new Database(":memory:");
    db.run("CREATE TEMP TABLE dispatch_outbox (x); CREATE TEMP TABLE status_transitions (x); CREATE TEMP TABLE dispatch_schema (version)");
    install(db);
    enter(db);
    take(db, T0);
    expect([count(db, "main.status_transitions"), count(db, "temp.status_transitions")]).toEqual([2, 0]);
  });
});

describe("installInto()", () => {
  test("adds the tables to a program's file, which the program and we can then use", async () => {
    using dir = scratch();
    const path = foreign(dir.file("shop.db"));
    await installInto(terms(path, { missing: "refuse" }));
    const db = await open(path, { missing: "refuse" });
    enter(db);
    expect(db.query("PRAGMA journal_mode").values()).toEqual([["delete"]]);
    db.close();
  });

  test("refuses what is ours already, newer or missing", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"));
    expect(await refusal(() => installInto(terms(path)))).toStartWith("no: the outbox tables are installed already");
    await ours(dir.file("b.db"), (db) => db.run("UPDATE dispatch_schema SET version = 99"));
    expect(await refusal(() => installInto(terms(dir.file("b.db"))))).toStartWith("settings: ");
    expect(await refusal(() => installInto(terms(dir.file("c.db"), { missing: "refuse" })))).toStartWith("no: no database at");
  });
});

describe("an older or newer schema", () => {
  const steps = [...MIGRATIONS, NEXT];
  const old = MIGRATIONS.length;

  test("a newer one is refused by its number and the file stays as it is", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), (db) => db.run("UPDATE dispatch_schema SET version = 99"));
    await untouched(path, async () =>
      expect(await refusal(() => open(path))).toBe(
        `settings: database ${path} has schema 99, this outbox knows up to ${old}; use the newer outbox; the file was left untouched`,
      ),
    );
  });

  test("an older one is brought forward after a copy beside it, 0600", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), (db) => enter(db, { dedup_key: "k" }));
    const umask = process.umask(0);
    const db = await open(path, {}, steps).finally(() => process.umask(umask));
    expect(ownership(db)).toEqual({ whose: "ours", version: old + 1 });
    expect(enter(db, { dedup_key: "k" }).outcome).toBe("duplicate");
    db.close();
    const copy = `${path}.schema-${old}.backup`;
    expect(mode(copy)).toBe("600");
    await ours(copy, (restored) =>
      expect([ownership(restored), count(restored, "dispatch_outbox")]).toEqual([{ whose: "ours", version: old }, 1]),
    );
    expect(readdirSync(dir.path).toSorted()).toEqual(["a.db", `a.db.schema-${old}.backup`]);
  });

  test("an older one is told where it may not be changed, and stays as it is", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"));
    await untouched(path, async () =>
      expect(await refusal(() => open(path, { older: "refuse" }, steps))).toBe(
        `settings: database ${path} has schema ${old}, this outbox needs ${old + 1}; run: outbox migrate`,
      ),
    );
    expect(readdirSync(dir.path)).toEqual(["a.db"]);
  });

  test("a claim of before is settled after", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), (db) => (enter(db), take(db, T0)));
    const db = await open(path, {}, steps);
    expect(
      db.run(
        "UPDATE dispatch_outbox SET status = 'delivered', reason_code = 'dispatch.delivered.transport_ok', lock_token = NULL, holder = NULL",
      ).changes,
    ).toBe(1);
    db.close();
  });

  test("several upgraders at once: one brings it forward, and the copy is of before", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), enter);
    expect(await openers(6, path, [NEXT])).toEqual([]);
    await ours(`${path}.schema-${old}.backup`, (copy) =>
      expect([ownership(copy), count(copy, "dispatch_outbox")]).toEqual([{ whose: "ours", version: old }, 1]),
    );
    await ours(path, (db) => expect(count(db, "dispatch_outbox")).toBe(7), steps);
  }, 30_000);

  test("the rest of an interrupted copy is no copy, and does not stand in the way", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), enter);
    writeFileSync(`${path}.schema-${old}.backup.partial`, "half a da");
    await ours(path, undefined, steps);
    await ours(`${path}.schema-${old}.backup`, (copy) => expect(count(copy, "dispatch_outbox")).toBe(1));
    expect(readdirSync(dir.path).toSorted()).toEqual(["a.db", `a.db.schema-${old}.backup`]);
  });

  test("without a copy nothing is brought forward", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), enter);
    mkdirSync(`${path}.schema-${old}.backup`); // its name cannot be had
    expect(await refusal(() => open(path, {}, steps))).toStartWith(`io: cannot copy the database to ${path}.schema-${old}.backup: `);
    await ours(path, (db) => expect(ownership(db)).toEqual({ whose: "ours", version: old }));
    expect(readdirSync(dir.path).toSorted()).toEqual(["a.db", `a.db.schema-${old}.backup`]);
  });

  test("a step that fails leaves the schema as it was", async () => {
    using dir = scratch();
    const path = await ours(dir.file("a.db"), enter);
    const wrong = [...MIGRATIONS, NEXT, "CREATE TABLE main.dispatch_outbox (x)"];
    expect(await refusal(() => open(path, {}, wrong))).toMatch(/^io: .* dispatch_outbox does not belong to its schema version/);
    await ours(path, (db) => expect([ownership(db), count(db, "dispatch_outbox")]).toEqual([{ whose: "ours", version: old }, 1]));
  });

  test("no copy is made of a program's file, which is its affair", async () => {
    using dir = scratch();
    const path = foreign(dir.file("shop.db"));
    await installInto(terms(path));
    await ours(path, undefined, steps);
    expect(readdirSync(dir.path)).toEqual(["shop.db"]);
  });

  test("bringForward() changes nothing when there is nothing to do", () => {
    using db = new Database(":memory:");
    install(db, steps);
    const before = db.query("SELECT * FROM sqlite_schema").all();
    bringForward(db, steps);
    expect(db.query("SELECT * FROM sqlite_schema").all()).toEqual(before);
  });
});

test("the number of the schema is that of its steps", () => {
  expect(SCHEMA_VERSION).toBe(MIGRATIONS.length);
});

test("the schema uses no syntax younger than SQLite 3.38", () => {
  for (const step of MIGRATIONS) {
    const code = step.replaceAll(/--.*$/gm, "");
    // 3.47: an expression in RAISE. Others: 3.39, 3.39, 3.43, 3.44, 3.45, 3.46, 3.46, 3.48.
    for (const [, message] of code.matchAll(/RAISE\s*\(\s*\w+\s*,\s*([^)]*)\)/g)) expect(message).toMatch(/^'[^']*'$/);
    expect(code).not.toMatch(
      /\bIS (NOT )?DISTINCT FROM\b|\b(RIGHT|FULL) (OUTER )?JOIN\b|\b(octet_length|concat|concat_ws|string_agg|jsonb\w*|timediff|if|unistr)\s*\(|\d_\d/i,
    );
    expect(code.replaceAll(/'[^']*'/g, "''")).not.toMatch(/"/); // a misspelt name in double quotes is a string
  }
});
