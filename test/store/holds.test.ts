import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { endHolds, hold, type HoldScope, holds, resume } from "../../src/store/gates.ts";
import { breaches } from "../../src/store/invariants.ts";
import { createStore } from "../../src/store/store.ts";
import { countedEntropy, enter, handClock, memory, T0, take } from "../fixtures/world.ts";

const BY = { now: T0, actor: "anna" };
const FOREVER = { ...BY, endsAt: null, note: null };
const scope = (given: Partial<HoldScope> = {}): HoldScope => ({ deliverTo: null, kind: null, orderingKey: null, ...given });

/** One row for each of two destinations, kinds and keys; their numbers are 1 to 8. */
function eight(): Database {
  const db = memory();
  for (let n = 0; n < 8; n++)
    enter(db, { deliver_to: `seat-${n & 1}`, kind: `kind-${(n >> 1) & 1}`, ordering_key: (n & 4) === 0 ? null : `key-${n}` });
  return db;
}
function claimable(db: Database, now = T0): number[] {
  const seqs: number[] = [];
  db.run("SAVEPOINT look");
  for (let got = take(db, now); got !== null; got = take(db, now)) seqs.push(got.seq);
  db.run("ROLLBACK TO look");
  db.run("RELEASE look");
  expect(breaches(db, now)).toEqual([]);
  return seqs.toSorted((a, b) => a - b);
}

describe("a hold", () => {
  test.each([
    [{ deliverTo: "seat-1" }, [1, 3, 5, 7]],
    [{ kind: "kind-0" }, [3, 4, 7, 8]],
    [{ orderingKey: "key-5" }, [1, 2, 3, 4, 5, 7, 8]],
    [{ deliverTo: "seat-1", kind: "kind-0" }, [1, 3, 4, 5, 7, 8]],
    [{ deliverTo: "seat-1", orderingKey: "key-5" }, [1, 2, 3, 4, 5, 7, 8]],
    [{ deliverTo: "seat-0", orderingKey: "key-5" }, [1, 2, 3, 4, 5, 6, 7, 8]],
    [{ kind: "kind-0", orderingKey: "key-5" }, [1, 2, 3, 4, 5, 7, 8]],
    [{ deliverTo: "seat-1", kind: "kind-1", orderingKey: "key-5" }, [1, 2, 3, 4, 5, 6, 7, 8]],
    [{ deliverTo: "nobody" }, [1, 2, 3, 4, 5, 6, 7, 8]],
    [{}, []],
  ] as const)("of %p leaves %p, for rows of before and of after, until it is resumed", (given, left) => {
    for (const when of ["before", "after"] as const) {
      const db = when === "before" ? memory() : eight();
      hold(db, scope(given), FOREVER);
      if (when === "before")
        for (let n = 0; n < 8; n++)
          enter(db, { deliver_to: `seat-${n & 1}`, kind: `kind-${(n >> 1) & 1}`, ordering_key: (n & 4) === 0 ? null : `key-${n}` });
      expect(claimable(db)).toEqual([...left]);
      expect(resume(db, scope(given), BY)).toBe(1);
      expect(claimable(db)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    }
  });

  test("of which two name a row holds it until both are over", () => {
    const db = eight();
    hold(db, scope({ deliverTo: "seat-1" }), FOREVER);
    hold(db, scope({ kind: "kind-0" }), FOREVER);
    resume(db, scope({ deliverTo: "seat-1" }), BY);
    expect(claimable(db)).toEqual([3, 4, 7, 8]);
    expect(resume(db, "all", BY)).toBe(1);
    expect(claimable(db)).toHaveLength(8);
  });

  test("ends by itself at ends_at, and not before", async () => {
    const clock = handClock();
    const db = eight();
    const store = createStore(db, "memory", { clock, entropy: countedEntropy() });
    const one = await store.hold(scope(), { actor: "anna", forS: 60, note: "moving house" });
    expect(one).toEqual({
      id: 1,
      deliver_to: null,
      kind: null,
      ordering_key: null,
      note: "moving house",
      created_at: T0,
      ends_at: T0 + 60,
      actor: "anna",
    });
    const terms = {
      holder: "h",
      circuit: { failures: 5, cooldownS: 60 },
      settle: [],
      renew: [],
      claim: { dueBy: null, atMost: 64, fallbackLeaseS: 15, kinds: new Map(), perDestination: 64, inHand: [], isAlive: () => false },
    };
    expect(await store.nextMoment()).toBe(T0 + 60);
    clock.pass(59.999);
    expect((await store.exchange(terms)).taken).toEqual([]);
    expect((await store.figures()).holds).toBe(1);
    clock.pass(0.001);
    expect((await store.exchange(terms)).taken).toHaveLength(8);
    expect(await store.holds()).toEqual([]);
  });

  test("that names the same is changed, not doubled; what it names stays", () => {
    const db = memory();
    hold(db, scope({ kind: "a" }), { ...FOREVER, note: "first" });
    expect(hold(db, scope({ kind: "a" }), { now: T0 + 5, actor: "bert", endsAt: T0 + 9, note: null })).toMatchObject({
      id: 1,
      note: "first",
      ends_at: T0 + 9,
      created_at: T0 + 5,
      actor: "bert",
    });
    expect(holds(db)).toHaveLength(1);
    for (const column of ["id", "deliver_to", "kind", "ordering_key"])
      expect(() => db.run(`UPDATE dispatch_holds SET ${column} = 7`)).toThrow("written once");
  });

  test("is no hold of an ended row: one that is brought back is held", () => {
    const db = memory();
    enter(db, { max_attempts: 1 });
    take(db, T0);
    take(db, T0 + 15);
    hold(db, scope(), FOREVER);
    db.run(
      "UPDATE dispatch_outbox SET status = 'pending', reason_code = 'dispatch.pending.operator_retry', attempt = 0, updated_at = updated_at + 1",
    );
    expect(claimable(db, T0 + 99)).toEqual([]);
    resume(db, scope(), BY);
    expect(claimable(db, T0 + 99)).toEqual([1]);
  });

  test("stops claims and nothing else: a claim of before settles, and its key waits", () => {
    const db = memory();
    enter(db, { ordering_key: "a" });
    enter(db, { ordering_key: "a" });
    take(db, T0);
    hold(db, scope(), FOREVER);
    db.run(
      "UPDATE dispatch_outbox SET status = 'delivered', reason_code = 'dispatch.delivered.transport_ok', lock_token = NULL, holder = NULL WHERE seq = 1",
    );
    expect(claimable(db)).toEqual([]);
    resume(db, scope(), BY);
    expect(claimable(db)).toEqual([2]);
  });

  test("leaves its row for no longer than its expiry", () => {
    const db = memory();
    enter(db, { expires_at: T0 + 5 });
    hold(db, scope(), FOREVER);
    expect(take(db, T0 + 5)).toMatchObject({ status: "expired" });
  });

  test("and its end are audited, with what they named", () => {
    const db = memory();
    hold(db, scope({ kind: "a" }), { ...FOREVER, note: "n", endsAt: T0 + 9 });
    resume(db, scope({ kind: "b" }), BY);
    resume(db, scope({ kind: "a" }), { now: T0 + 1, actor: "bert" });
    hold(db, scope(), FOREVER);
    resume(db, "all", BY);
    expect(db.query("SELECT action, actor, details FROM admin_events ORDER BY id").values()).toEqual([
      ["dispatch.hold", "anna", `{"deliver_to":null,"kind":"a","ordering_key":null,"note":"n","ends_at":${T0 + 9}}`],
      ["dispatch.resume", "bert", '{"deliver_to":null,"kind":"a","ordering_key":null,"ended":1}'],
      ["dispatch.hold", "anna", '{"deliver_to":null,"kind":null,"ordering_key":null,"note":null,"ends_at":null}'],
      ["dispatch.resume", "anna", '{"all":true,"ended":1}'],
    ]);
  });

  test("over many rows touches those that it names, once each", () => {
    const db = memory();
    db.transaction(() => {
      for (let n = 0; n < 3_000; n++) enter(db, { kind: n % 3 === 0 ? "held" : "other", deliver_to: `seat-${n % 7}` });
    })();
    const changes = (work: () => void): number => {
      const before = db.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0;
      work();
      return (db.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0) - before;
    };
    // The row of the hold, its audit, each row, and a destination whenever its first due time changed.
    expect(changes(() => void hold(db, scope({ kind: "held" }), FOREVER))).toBeLessThanOrEqual(2 + 1_000 + 1_000);
    expect(changes(() => void resume(db, scope({ kind: "held" }), BY))).toBeLessThanOrEqual(2 + 1_000 + 1_000);
    expect(breaches(db, T0)).toEqual([]);
    endHolds(db, T0);
  });
});
