/** Changing by filter from a program: whole, in its transaction, with what was refused counted. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { cancel, type ChangeFilter, enqueue, get, install, list, purge, retry } from "../../../src/index.ts";
import { count } from "../../fixtures/world.ts";

/** Six messages: kinds a, b, a, b, a, b; the last two have expired before they are cancelled. */
function shop(): Database {
  const db = new Database(":memory:");
  install(db);
  for (let n = 0; n < 6; n++)
    enqueue(db, { kind: n % 2 === 0 ? "a" : "b", deliver_to: `seat-${n}`, expires_at: n < 4 ? undefined : 5, dedup_key: `key-${n}` });
  return db;
}
const statuses = (db: Database): string[] => list(db, { oldest_first: true }).map(({ status }) => status);

test("retry(), cancel() and purge() take a filter in the place of an id, and answer how many", () => {
  const db = shop();
  expect(cancel(db, { kind: "a", deliver_to: ["seat-0", "seat-1", "seat-2"] })).toEqual({ changed: 2, refused: 0 });
  expect(cancel(db, { all: true }, { actor: "me" })).toEqual({ changed: 4, refused: 0 });
  expect(cancel(db, { all: true })).toEqual({ changed: 0, refused: 0 });
  expect(retry(db, { status: "expired" }, { dry_run: true })).toEqual({ changed: 4, refused: 2 });
  expect(retry(db, { status: "expired" }, { not_before: 4e9 })).toEqual({ changed: 4, refused: 2 });
  expect(list(db, { status: "pending" }).map(({ next_attempt_at }) => next_attempt_at)).toEqual([4e9, 4e9, 4e9, 4e9]);
  expect(retry(db, { reason: "cancelled" }, { expires_at: 5e9 })).toEqual({ changed: 2, refused: 0 });
  expect(purge(db, { all: true })).toEqual({ changed: 0, refused: 0 });
  expect(purge(db, { status: ["pending"], dedup_key: "key-5" })).toEqual({ changed: 1, refused: 0 });
  expect(statuses(db)).toEqual(["pending", "pending", "pending", "pending", "pending"]);
  const audits = db
    .query<{ action: string; target_id: string | null; actor: string }, []>("SELECT action, target_id, actor FROM admin_events")
    .all();
  expect(audits.map(({ action, target_id, actor }) => [action, target_id, actor])).toEqual([
    ["dispatch.cancel", null, "library"],
    ["dispatch.cancel", null, "me"],
    ["dispatch.retry", null, "library"],
    ["dispatch.retry", null, "library"],
    ["dispatch.purge", null, "library"],
  ]);
});

test("a live row is counted as refused, and purged by force", () => {
  const db = shop();
  const { claim } = enqueue(db, { kind: "mine", deliver_to: "seat-9" }, { claim: true });
  expect(claim).not.toBeNull();
  expect(cancel(db, { kind: "mine" })).toEqual({ changed: 0, refused: 1 });
  expect(purge(db, { status: "delivering" })).toEqual({ changed: 0, refused: 1 });
  expect(purge(db, { status: "delivering" }, { force: true })).toEqual({ changed: 1, refused: 0 });
});

describe("in the program's transaction", () => {
  test.each<[string, (db: Database) => unknown]>([
    ["cancel", (db) => cancel(db, { all: true })],
    ["purge", (db) => purge(db, { status: "pending" })],
  ])("%s commits with it, and is taken back with it", (_, change) => {
    const db = shop();
    const before = db.serialize();
    const regret = db.transaction(() => {
      change(db);
      throw new Error("changed its mind");
    });
    expect(() => regret.immediate()).toThrow("changed its mind");
    expect(statuses(db)).toEqual(Array(6).fill("pending"));
    expect(count(db, "admin_events")).toBe(0);
    expect(db.serialize().byteLength).toBe(before.byteLength);
    db.transaction(() => change(db)).immediate();
    expect(count(db, "admin_events")).toBe(1);
    expect(list(db, { status: "pending" })).toEqual([]);
  });
});

test("a filter by variable is a filter, and an id stays an id", () => {
  const db = shop();
  const filter: ChangeFilter = { dedup_key: ["key-0", "key-0", "none"] };
  expect(cancel(db, filter).changed).toBe(1);
  expect(cancel(db, "2").outcome).toBe("changed");
  expect(get(db, 2)?.status).toBe("expired");
});

test("dead letters are read page by page, the oldest first, without payload and tokens", () => {
  const db = shop();
  cancel(db, { all: true });
  const seen: number[] = [];
  for (let after = 0; ;) {
    const rows = list(db, { status: ["dead_letter", "expired"], oldest_first: true, after, limit: 4 });
    if (rows.length === 0) break;
    for (const row of rows) expect(Object.keys(row)).not.toContainAnyValues(["payload", "ack_token", "lock_token"]);
    seen.push(...rows.map(({ seq }) => seq));
    after = seen.at(-1) ?? 0;
  }
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
});
