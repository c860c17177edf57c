/** The write-ahead log, brought back to its size where readers let it grow. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, statSync, symlinkSync } from "node:fs";
import { checkRequest } from "../../src/core/request.ts";
import { LOG_LIMIT } from "../../src/store/log.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { terms } from "../fixtures/store/terms.ts";
import { countedEntropy, handClock, scratch } from "../fixtures/world.ts";

const FOR_EVER = { deliveredS: 0, deadLetterS: 0, inboxS: 0 };
const sweep = (store: Store) => store.sweep(FOR_EVER, () => false);
const logOf = (path: string): number => statSync(`${path}-wal`).size;

/** Enters so much at once that the log is beyond its limit. */
async function fill(store: Store): Promise<void> {
  const body = { text: "x".repeat(100_000) };
  await store.enqueue(Array.from({ length: 60 }, () => checkRequest({ kind: "ping", deliver_to: "seat-1", body })));
}

test("LOG_LIMIT is the journal_size_limit of a handle that we opened", async () => {
  using dir = scratch();
  const { openDatabase } = await import("../../src/store/open.ts");
  using db = await openDatabase(terms(dir.file("a.db")));
  expect(db.query<Record<string, number>, []>("PRAGMA journal_size_limit").get()).toEqual({ journal_size_limit: LOG_LIMIT });
});

test.each(["a.db", "link.db"])("a sweep empties a log beyond its limit, also behind a symlink: %s", async (opened) => {
  using dir = scratch();
  const path = dir.file("a.db");
  symlinkSync(path, dir.file("link.db"));
  new Database(path, { create: true }).close();
  const store = await openStore(terms(dir.file(opened), { busyMs: 10 }), { clock: handClock(), entropy: countedEntropy() });
  await fill(store);
  expect(logOf(path)).toBeGreaterThan(LOG_LIMIT);
  await sweep(store);
  expect(logOf(path)).toBe(0);
  await store.close();
});

test("a log within its limit is left as it is: a sweep that removes nothing writes nothing", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const store = await openStore(terms(path), { clock: handClock(), entropy: countedEntropy() });
  await store.enqueue([checkRequest({ kind: "ping", deliver_to: "seat-1" })]);
  const bytes = async (): Promise<unknown[]> =>
    Promise.all([path, `${path}-wal`].map(async (file) => Bun.hash(await Bun.file(file).bytes())));
  const before = await bytes();
  await sweep(store);
  expect(await bytes()).toEqual(before);
  await store.close();
});

test("a reader in its way is waited out until another time, and costs no sweep", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const store = await openStore(terms(path, { busyMs: 10 }), { clock: handClock(), entropy: countedEntropy() });
  using reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM dispatch_outbox").get();
  await fill(store);
  expect(await sweep(store)).toEqual({ removed: 0, deadLetters: 0, more: false });
  expect(logOf(path)).toBeGreaterThan(LOG_LIMIT);
  reader.run("COMMIT");
  await sweep(store);
  expect(logOf(path)).toBe(0);
  await store.close();
});

test("what a sweep deleted is gone from the file and its log with the next sweep, as soon as no reader is in the way", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const clock = handClock();
  const store = await openStore(terms(path, { busyMs: 10 }), { clock, entropy: countedEntropy() });
  const mark = "what nobody may read";
  await store.enqueue([checkRequest({ kind: "ping", deliver_to: "seat-1", body: { text: mark } })]);
  await store.cancel({ seq: 1 }, { actor: "somebody", dryRun: false });
  const there = (): boolean => [path, `${path}-wal`].some((file) => readFileSync(file).includes(mark));
  clock.pass(60);
  const windows = { deliveredS: 1, deadLetterS: 1, inboxS: 1 };
  {
    using reader = new Database(path, { readonly: true });
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM dispatch_outbox").get();
    expect(await store.sweep(windows, () => false)).toMatchObject({ removed: 1 });
    await store.sweep(windows, () => false);
    expect(there()).toBeTrue();
    reader.run("COMMIT");
  }
  await store.sweep(windows, () => false);
  expect(there()).toBeFalse();
  await store.close();
});
