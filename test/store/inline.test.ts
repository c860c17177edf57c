import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { checkRequest, type EnqueueRequest } from "../../src/core/request.ts";
import { claimNext } from "../../src/store/claim.ts";
import { enqueueClaimed, type Inline } from "../../src/store/inline.ts";
import { hold } from "../../src/store/gates.ts";
import { createStore } from "../../src/store/store.ts";
import { countedEntropy, enter, entropy, handClock, memory, row, T0, take, terms } from "../fixtures/world.ts";

const INLINE = { holder: "shop 7 7", fallbackLeaseS: 15, kinds: new Map(), perDestination: 4, circuits: true };
function now(
  db: Database,
  request: Partial<EnqueueRequest> = {},
  at = T0,
  otherwise: Partial<Parameters<typeof enqueueClaimed>[2]> = {},
): Inline {
  return enqueueClaimed(
    db,
    checkRequest({ kind: "ping", deliver_to: "seat-1", ...request }),
    { ...INLINE, now: at, ...otherwise },
    entropy,
  );
}

describe("enqueueClaimed()", () => {
  test("enters the row already leased, with both history rows", () => {
    const db = memory();
    const { answer, claim, refusal } = now(db);
    expect(refusal).toBeNull();
    expect(claim).toEqual(row(db, 1));
    expect(claim).toMatchObject({ status: "delivering", attempt: 1, holder: "shop 7 7", next_attempt_at: T0 + 15 });
    expect(answer).toMatchObject({ seq: 1, outcome: "created", status: "delivering", attempt: 1, next_attempt_at: T0 + 15 });
    expect(db.query("SELECT status FROM status_transitions ORDER BY id").values()).toEqual([["pending"], ["delivering"]]);
    expect(take(db, T0)).toBeNull();
  });

  test("claims at a time between two milliseconds too", () => {
    for (const part of [0.0004, 0.0006]) expect(now(memory(), {}, T0 + part).refusal).toBeNull();
  });

  const REFUSED: readonly (readonly [why: Inline["refusal"], how: string, make: (db: Database) => Inline])[] = [
    ["not due", "a later not_before", (db) => now(db, { not_before: T0 + 5 })],
    ["expired", "a past expiry", (db) => now(db, { expires_at: T0 - 5 })],
    [
      "behind its key",
      "an earlier row of its key",
      (db) => (enter(db, { ordering_key: "a", deliver_to: "x" }), now(db, { ordering_key: "a" })),
    ],
    ["destination full", "as many claims as it may have", (db) => (Array.from({ length: 4 }, () => now(db)), now(db))],
    [
      "held",
      "a hold",
      (db) => (hold(db, { deliverTo: "seat-1", kind: null, orderingKey: null }, { now: T0, actor: "", endsAt: null, note: null }), now(db)),
    ],
    [
      "circuit open",
      "a cooldown",
      (db) => (enter(db, { not_before: T0 + 9 }), db.run(`UPDATE dispatch_destinations SET failures = 5, open_until = ${T0 + 1}`), now(db)),
    ],
    [
      "circuit open",
      "a probe under way",
      (db) => (
        enter(db),
        db.run(`UPDATE dispatch_destinations SET failures = 5, open_until = ${T0 - 1}`),
        claimNext(db, terms(T0), entropy.token()),
        now(db)
      ),
    ],
    ["no route", "a kind that nothing sends", (db) => now(db, {}, T0, { kinds: new Map([["ping", null]]) })],
    ["duplicate", "its dedup key", (db) => (enter(db, { dedup_key: "k" }), now(db, { dedup_key: "k" }))],
  ];
  test.each(REFUSED)("answers %p to %s, and the row stays pending", (why, _, make) => {
    const db = memory();
    const { answer, claim, refusal } = make(db);
    expect([claim, refusal]).toEqual([null, why]);
    expect(row(db, answer.seq)).toMatchObject({ status: "pending", attempt: 0, lock_token: null });
    expect(answer).toMatchObject({ status: "pending", attempt: 0 });
  });

  test("goes ahead of an older row without key, which is no guard, and is the probe where there is room for one", () => {
    const db = memory();
    enter(db);
    db.run(`UPDATE dispatch_destinations SET failures = 5, open_until = ${T0 - 1}`);
    expect(now(db).claim?.seq).toBe(2);
    expect(take(db, T0)).toBeNull();
  });

  test("passes a hold whose time is over, and a circuit where circuits are off", () => {
    const db = memory();
    hold(db, { deliverTo: null, kind: null, orderingKey: null }, { now: T0 - 9, actor: "", endsAt: T0, note: null });
    expect(now(db).refusal).toBeNull();
    db.run("UPDATE dispatch_destinations SET failures = 5, open_until = 9e9");
    expect(now(db, {}, T0, { circuits: false }).refusal).toBeNull();
  });

  test("is a method of the store, in one transaction", async () => {
    const db = memory();
    const store = createStore(db, "memory", { clock: handClock(), entropy: countedEntropy() });
    const request = checkRequest({ kind: "ping", deliver_to: "seat-1" });
    const terms = { holder: "shop 7 7", leaseS: 30, perDestination: 1, circuits: true };
    expect(await store.enqueueClaimed(request, terms)).toMatchObject({ claim: { next_attempt_at: T0 + 30 }, refusal: null });
    expect(await store.enqueueClaimed(request, terms)).toMatchObject({ claim: null, refusal: "destination full" });
  });
});
