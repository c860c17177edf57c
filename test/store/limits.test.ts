import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { recount } from "../../src/store/claim.ts";
import { install } from "../../src/store/migrate.ts";
import { enter, memory, scratch, T0, take } from "../fixtures/world.ts";

/** Claims as a runner with this many slots does. */
function batch(db: Database, now: number, size: number, perDestination: number): string[] {
  return db
    .transaction(() => {
      recount(db, now);
      const to: string[] = [];
      while (to.length < size) {
        const got = take(db, now, { perDestination });
        if (got === null) break;
        to.push(got.deliver_to);
      }
      return to;
    })
    .immediate();
}

function live(db: Database, now: number): Record<string, number> {
  const rows = db
    .query<{ deliver_to: string; n: number }, [number]>(
      "SELECT deliver_to, count(*) AS n FROM dispatch_outbox WHERE status = 'delivering' AND next_attempt_at > ? GROUP BY 1",
    )
    .all(now);
  return Object.fromEntries(rows.map(({ deliver_to, n }) => [deliver_to, n]));
}

describe("per_destination", () => {
  test("holds within one batch", () => {
    const db = memory();
    for (let n = 0; n < 20; n++) enter(db);
    expect(batch(db, T0, 64, 4)).toHaveLength(4);
    expect(batch(db, T0, 64, 4)).toHaveLength(0);
  });

  test("holds over four connections with batches of 64, through every crash of a runner", () => {
    using dir = scratch();
    const connections = Array.from({ length: 4 }, () => {
      const db = new Database(dir.file("a.db"), { create: true, readwrite: true, strict: true });
      db.run("PRAGMA journal_mode = WAL");
      db.run("PRAGMA synchronous = OFF");
      return db;
    });
    const [first] = connections;
    if (first === undefined) throw new Error("no connection");
    install(first);
    first.transaction(() => {
      for (let n = 0; n < 300; n++) enter(first, { deliver_to: `seat-${n % 3}`, max_attempts: 100 });
    })();
    // Nobody settles: every lease runs out, as if each runner died. Half of them begin three seconds later.
    let most = 0;
    for (let round = 0; round < 60; round++) {
      const now = T0 + round * 3;
      for (const db of connections) batch(db, now, 64, 4);
      most = Math.max(most, ...Object.values(live(first, now)));
      expect(Object.values(live(first, now))).toEqual([4, 4, 4]);
    }
    expect(most).toBe(4);
    for (const db of connections) db.close();
  });

  test("is never filled by claims whose runner vanished", () => {
    const db = memory();
    for (let n = 0; n < 8; n++) enter(db, { not_before: n < 4 ? T0 : T0 + 1 });
    expect(batch(db, T0, 4, 4)).toHaveLength(4);
    expect(batch(db, T0 + 14, 8, 4)).toHaveLength(0);
    expect(batch(db, T0 + 15, 8, 4)).toHaveLength(4);
  });
});

describe("a free slot goes", () => {
  test("to the due destination with the fewest live claims, then to who has waited longest", () => {
    const db = memory();
    for (let n = 0; n < 4; n++) enter(db, { deliver_to: "old" });
    for (let n = 0; n < 2; n++) enter(db, { deliver_to: "young", not_before: T0 + 1 });
    enter(db, { deliver_to: "youngest", not_before: T0 + 2 });
    expect(batch(db, T0 + 2, 7, 4)).toEqual(["old", "young", "youngest", "old", "young", "old", "old"]);
  });

  test("past two hung destinations with old backlogs, which do not take every slot", () => {
    const db = memory();
    for (let n = 0; n < 40; n++) enter(db, { deliver_to: n % 2 === 0 ? "hung-1" : "hung-2" });
    for (let n = 0; n < 6; n++) enter(db, { deliver_to: `quick-${n}`, not_before: T0 + 10 });
    expect(batch(db, T0, 4, 8)).toEqual(["hung-1", "hung-2", "hung-1", "hung-2"]);
    // One slot after the other becomes free while both hang.
    const next = Array.from({ length: 7 }, () => batch(db, T0 + 10, 1, 8)).flat();
    expect(next.slice(0, 6).toSorted()).toEqual(Array.from({ length: 6 }, (_, n) => `quick-${n}`));
    expect(next[6]).toStartWith("hung");
  });

  test("to a destination whose claims are all stale as to one that has none", () => {
    const db = memory();
    for (let n = 0; n < 3; n++) enter(db, { deliver_to: "crashed" });
    expect(batch(db, T0, 3, 4)).toHaveLength(3);
    for (let n = 0; n < 4; n++) enter(db, { deliver_to: "busy", not_before: T0 + 10 });
    expect(batch(db, T0 + 10, 1, 4)).toEqual(["busy"]);
    expect(batch(db, T0 + 16, 1, 4)).toEqual(["crashed"]);
  });

  test("past a destination whose row waits for a route", () => {
    const db = memory();
    enter(db, { deliver_to: "a", kind: "faulty" });
    enter(db, { deliver_to: "a", kind: "fine", not_before: T0 + 1 });
    enter(db, { deliver_to: "b", kind: "faulty", not_before: T0 + 2 });
    enter(db, { deliver_to: "c", kind: "fine", not_before: T0 + 3 });
    const kinds = new Map([["faulty", null]]);
    expect([1, 2, 3].map(() => take(db, T0 + 3, { kinds })?.seq ?? null)).toEqual([2, 4, null]);
  });
});
