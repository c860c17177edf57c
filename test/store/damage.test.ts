import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { OutboxError } from "../../src/core/errors.ts";
import { openDatabase } from "../../src/store/open.ts";
import { bringUp } from "../../src/store/prepare.ts";
import { createStore, openStore, type Store } from "../../src/store/store.ts";
import { asTrouble } from "../../src/store/trouble.ts";
import { checkRequest } from "../../src/core/request.ts";
import { terms } from "../fixtures/store/terms.ts";
import { entropy, handClock, scratch } from "../fixtures/world.ts";

const seams = { clock: handClock(), entropy };
const REQUEST = checkRequest({ kind: "ping", deliver_to: "seat-1" });

async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
  } catch (error) {
    if (error instanceof OutboxError) return `${error.kind}: ${error.message}; ${error.hint}`;
    throw error;
  }
  return "accepted";
}

/** A file of ours that somebody did this to. */
async function damaged(path: string, sql: string): Promise<string> {
  (await openDatabase(terms(path))).close();
  using db = new Database(path);
  db.run(sql);
  return path;
}

async function used(path: string, work: (store: Store) => Promise<unknown>): Promise<string> {
  return refusal(async () => {
    const store = await openStore(terms(path), seams);
    try {
      await work(store);
    } finally {
      await store.close();
    }
  });
}

const whole = (path: string, lost: string): string =>
  `io: database ${path} is not a whole outbox database: ${lost}; restore it from a copy`;

describe("a file of ours of which a part is gone", () => {
  test.each([
    ["DROP TABLE status_transitions", "status_transitions is missing"],
    ["DROP TABLE dispatch_destinations", "dispatch_destinations is missing"],
    ["DROP TABLE dispatch_outbox", "dispatch_outbox is missing"],
  ])("is told by its name when it is written to: %s", async (sql, lost) => {
    using dir = scratch();
    const path = await damaged(dir.file("a.db"), sql);
    expect(await used(path, (store) => store.enqueue([REQUEST]))).toBe(whole(path, lost));
  });

  test("is told when an operator's move cannot be noted", async () => {
    using dir = scratch();
    const path = await damaged(dir.file("a.db"), "DROP TABLE admin_events");
    const cancel = async (store: Store): Promise<unknown> => {
      const [answer] = await store.enqueue([REQUEST]);
      return store.cancel({ id: answer?.id ?? "" }, { actor: "uid 0", dryRun: false });
    };
    expect(await used(path, cancel)).toBe(whole(path, "admin_events is missing"));
  });

  test.each([
    ["(version)", "dispatch_schema holds no version"],
    ["(version); INSERT INTO dispatch_schema VALUES ('x')", "dispatch_schema holds no version"],
    ["(version); INSERT INTO dispatch_schema VALUES (1.5)", "dispatch_schema holds no version"],
    ["(other)", "version is missing"],
    ["(version); INSERT INTO dispatch_schema VALUES (1)", "dispatch_outbox is missing"],
    ["(version); INSERT INTO dispatch_schema VALUES (0)", "dispatch_schema does not belong to its schema version"],
  ])("is no database to bring forward: dispatch_schema %s", async (columns, lost) => {
    using dir = scratch();
    const path = dir.file("a.db");
    {
      using db = new Database(path);
      db.run(`CREATE TABLE dispatch_schema ${columns}`);
    }
    for (const attempt of [() => openDatabase(terms(path)), () => bringUp(terms(path))])
      expect(await refusal(attempt)).toBe(whole(path, lost));
  });

  test.each([
    ["DROP TABLE admin_events", "admin_events and admin_events.action", /admin_events_of_target/],
    ["DROP INDEX dispatch_due", "dispatch_due is missing", /./],
    ["DROP TRIGGER dispatch_moves", "dispatch_moves is missing", /./],
    ["DROP TABLE dispatch_told", "dispatch_told", /dispatch_told\.topic/],
    ["ALTER TABLE status_transitions RENAME COLUMN metadata TO meta", "status_transitions.metadata is missing", /./],
  ])("is not sound for migrate: %s", async (sql, lost, more) => {
    using dir = scratch();
    const path = await damaged(dir.file("a.db"), sql);
    const said = await refusal(() => bringUp(terms(path)));
    expect(said).toStartWith(`io: database ${path} is not a whole outbox database: ${lost}`);
    expect(said).toMatch(more);
  });

  test("is not one to which a program added tables, columns and indexes of its own", async () => {
    using dir = scratch();
    const more =
      "CREATE TABLE orders (id); ALTER TABLE dispatch_outbox ADD COLUMN shop TEXT; CREATE INDEX by_shop ON dispatch_outbox (shop)";
    const path = await damaged(dir.file("a.db"), more);
    expect(await refusal(() => bringUp(terms(path)))).toBe("accepted");
  });

  test("shows also in a program's own handle", async () => {
    using db = new Database(":memory:");
    const store = createStore(db, "shop.db", seams);
    expect(await refusal(() => store.enqueue([REQUEST]))).toStartWith("io: database shop.db is not a whole outbox database: ");
  });
});

describe("what is no regular file", () => {
  test.each(["make", "refuse"] as const)("is refused as what it is, never waited for (missing: %s)", async (missing) => {
    using dir = scratch();
    spawnSync("mkfifo", [dir.file("pipe")]);
    for (const [path, what] of [
      [dir.file("pipe"), "a pipe"],
      ["/dev/null", "a device"],
      ["/dev/zero", "a device"],
      [dir.path, "a directory"],
    ] as const)
      for (const checkPlace of [false, true])
        expect(await refusal(() => openDatabase(terms(path, { missing, checkPlace })))).toBe(
          `io: database ${path} is not a regular file (it is ${what}); name a file`,
        );
  });

  test.each(["make", "refuse"] as const)("stands in the way as a part of the path (missing: %s)", async (missing) => {
    using dir = scratch();
    await Bun.write(dir.file("file"), "");
    expect(await refusal(() => openDatabase(terms(dir.file("file/a.db"), { missing })))).toBe(
      `io: database ${dir.file("file/a.db")}: a part of its path is not a directory; check the path and its directories`,
    );
    const long = dir.file("n".repeat(300));
    expect(await refusal(() => openDatabase(terms(long, { missing })))).toBe(
      `io: database ${long}: a name in it is too long; check the path and its directories`,
    );
  });
});

test("shared memory for which there is no room is a full disk", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const sqlite = (errno: number): Error => Object.assign(new Error("disk I/O error"), { name: "SQLiteError", errno });
  expect(await refusal(() => Promise.reject(asTrouble(sqlite(10 | (19 << 8)), path)))).toBe(
    `io: database ${path}: the disk is full; free some space`,
  );
  expect(await refusal(() => Promise.reject(asTrouble(sqlite(10 | (1 << 8)), path)))).toStartWith(`io: database ${path}: an I/O error`);
});
