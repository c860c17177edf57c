import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { moveAfter } from "../../src/core/lifecycle.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { breaches } from "../../src/store/invariants.ts";
import { cancel, purge, retry } from "../../src/store/operator.ts";
import { ack, settle } from "../../src/store/transitions.ts";
import { enter, memory, POLICY, row, T0, take } from "../fixtures/world.ts";

const REPORT = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
const OK: Outcome = { kind: "ok", report: REPORT };
const FAILED: Outcome = { kind: "failed", report: REPORT, error: "exit 1", retryAfterMs: 5_000 };
const BY = { now: T0, actor: "anna" };

/** Enters a row of a key, each with a destination of its own, so that nothing but the key orders them. */
function keyed(db: Database, key: string | null, otherwise: Parameters<typeof enter>[1] = {}): number {
  return enter(db, { ordering_key: key, deliver_to: `seat-${Math.max(1, lastSeq(db) + 1)}`, ...otherwise }).seq;
}
function lastSeq(db: Database): number {
  return db.query<{ n: number }, []>("SELECT coalesce(max(seq), 0) AS n FROM dispatch_outbox").get()?.n ?? 0;
}
function finish(db: Database, claim: Dispatch | null, outcome: Outcome, now: number): void {
  if (claim === null) throw new Error("nothing was claimed");
  const held = { seq: claim.seq, attempt: claim.attempt, lockToken: claim.lock_token ?? "" };
  expect(settle(db, held, moveAfter(outcome, claim, POLICY, now, 0.5), now, "h")).toBe("applied");
}
/** Claims all that may go, and tells which. */
function all(db: Database, now: number): (number | string)[] {
  const seqs: (number | string)[] = [];
  for (let got = take(db, now); got !== null; got = take(db, now))
    seqs.push(got.status === "delivering" ? got.seq : `${got.seq} ${got.status}`);
  expect(breaches(db, now)).toEqual([]);
  return seqs;
}

describe("the order of a key", () => {
  test("is that of seq, one at a time, whatever the due times say", () => {
    const db = memory();
    keyed(db, "a", { not_before: T0 + 2 });
    keyed(db, "a", { not_before: T0 + 1 });
    keyed(db, "a");
    expect(all(db, T0 + 1)).toEqual([]);
    const seen: number[] = [];
    for (let now = T0 + 2; seen.length < 3; now++) {
      const claim = take(db, now);
      seen.push(claim?.seq ?? 0);
      expect(take(db, now)).toBeNull();
      finish(db, claim, OK, now);
    }
    expect(seen).toEqual([1, 2, 3]);
  });

  test("leaves other keys, and rows without one, alone", () => {
    const db = memory();
    for (const key of ["a", "a", "b", null, "b", null, "c"]) keyed(db, key);
    expect(new Set(all(db, T0))).toEqual(new Set([1, 3, 4, 6, 7]));
  });

  test.each(["a delayed row", "a row that waits for its acknowledgement", "a row that waits to be tried again", "a claim"] as const)(
    "is blocked by %s",
    (blocker) => {
      const db = memory();
      const delayed = blocker === "a delayed row";
      keyed(db, "a", { ack_required: true, not_before: delayed ? T0 + 10 : null });
      keyed(db, "a");
      if (!delayed) {
        const claim = take(db, T0);
        if (blocker.startsWith("a row")) finish(db, claim, blocker.includes("acknowledgement") ? OK : FAILED, T0);
      }
      expect(all(db, T0)).toEqual([]);
    },
  );

  test.each(["delivered", "acked", "dead_letter", "expired", "cancelled", "purged"] as const)("goes on after a row that is %s", (end) => {
    const db = memory();
    const { id, ack_token } = enter(db, { ordering_key: "a", ack_required: end === "acked", max_attempts: 1, expires_at: T0 + 60 });
    keyed(db, "a");
    if (end === "cancelled") cancel(db, { id }, BY);
    else if (end === "purged") purge(db, { id }, BY);
    else {
      const claim = take(db, T0);
      if (end === "acked") ack(db, { id }, ack_token ?? "", T0);
      else if (end === "delivered") finish(db, claim, OK, T0);
      else if (end === "dead_letter") finish(db, claim, FAILED, T0);
      else expect(take(db, T0 + 60)).toMatchObject({ seq: 1, status: "expired" });
    }
    expect(all(db, T0 + 60)).toEqual([2]);
  });

  test("puts a row that an operator brought back into its old place", () => {
    const db = memory();
    for (let n = 0; n < 3; n++) keyed(db, "a");
    cancel(db, { seq: 1 }, BY);
    retry(db, { seq: 1 }, { ...BY, dueAt: T0 + 5 });
    expect(all(db, T0)).toEqual([]);
    const claim = take(db, T0 + 5);
    expect(claim?.seq).toBe(1);
    finish(db, claim, OK, T0 + 5);
    expect(all(db, T0 + 5)).toEqual([2]);
  });

  test("keeps a row that was brought back from joining a younger one that runs, until that one's lease is over", () => {
    const db = memory();
    for (let n = 0; n < 2; n++) keyed(db, "a");
    cancel(db, { seq: 1 }, BY);
    expect(take(db, T0)?.seq).toBe(2);
    retry(db, { seq: 1 }, BY);
    expect(all(db, T0 + 14.999)).toEqual([]);
    // The younger one's runner vanished. Now the older may go, and the younger waits for it: they do not wait for each other.
    expect(all(db, T0 + 15)).toEqual([1]);
    finish(db, row(db, 1), OK, T0 + 16);
    expect(all(db, T0 + 16)).toEqual([2]);
  });

  test("lets the younger one that runs settle, and then the older goes first", () => {
    const db = memory();
    for (let n = 0; n < 2; n++) keyed(db, "a");
    cancel(db, { seq: 1 }, BY);
    const younger = take(db, T0);
    retry(db, { seq: 1 }, BY);
    finish(db, younger, FAILED, T0 + 1);
    expect(all(db, T0 + 60)).toEqual([1]);
  });

  test("takes a row whose number a program chose into its place", () => {
    const db = memory();
    db.run(
      `INSERT INTO dispatch_outbox (seq, id, kind, deliver_to, ordering_key, payload, next_attempt_at, created_at, updated_at)
       VALUES (10, '${"a".repeat(32)}', 'k', 'x', 'a', '{}', ${T0}, ${T0}, ${T0}), (5, '${"b".repeat(32)}', 'k', 'y', 'a', '{}', ${T0}, ${T0}, ${T0})`,
    );
    expect(all(db, T0)).toEqual([5]);
  });
});

describe("a row that comes to its end needs no permission and frees its key:", () => {
  test.each(["behind its key", "held", "in a full destination", "behind an open circuit"] as const)("a row %s expires", (where) => {
    const db = memory();
    if (where === "behind its key") keyed(db, "a", { not_before: T0 + 100 });
    if (where === "held") db.run("INSERT INTO dispatch_holds (created_at, actor) VALUES (0, '')");
    enter(db, { deliver_to: "x", ordering_key: "a", expires_at: T0 + 5 });
    if (where === "in a full destination") {
      enter(db, { deliver_to: "x" });
      db.run(
        "UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 't', next_attempt_at = 9e9, updated_at = 1 WHERE seq = 2",
      );
    }
    if (where === "behind an open circuit") db.run("UPDATE dispatch_destinations SET open_until = 9e9, failures = 5");
    const seq = where === "behind its key" ? 2 : 1;
    keyed(db, "a", { deliver_to: "y" });
    expect(take(db, T0 + 4, { perDestination: 1 })?.seq ?? null).toBeNull();
    expect(take(db, T0 + 5, { perDestination: 1 })).toMatchObject({ seq, status: "expired" });
    if (where !== "behind its key" && where !== "held")
      expect(take(db, T0 + 5, { perDestination: 1 })).toMatchObject({ deliver_to: "y", status: "delivering" });
    expect(breaches(db, T0 + 5)).toEqual([]);
  });

  test("a held row that waited in vain for its acknowledgement dies", () => {
    const db = memory();
    keyed(db, "a", { ack_required: true, max_attempts: 1 });
    keyed(db, "a");
    finish(db, take(db, T0), OK, T0);
    db.run("INSERT INTO dispatch_holds (kind, created_at, actor) VALUES ('ping', 0, '')");
    expect(all(db, T0 + 10_000)).toEqual(["1 dead_letter"]);
    db.run("DELETE FROM dispatch_holds");
    expect(all(db, T0 + 10_000)).toEqual([2]);
  });
});

describe("a stale claim of a process that still lives", () => {
  test.each([
    ["a claim", {}, "delivering"],
    ["an end by its attempts", { max_attempts: 1 }, "dead_letter"],
    ["an end by its expiry", { expires_at: T0 + 1 }, "expired"],
  ] as const)("waits one more lease before %s", (_, request, status) => {
    const db = memory();
    enter(db, request);
    take(db, T0, { holder: "desk 1 1" });
    const alive = { alive: ["desk 1 1"], holder: "desk 2 2" };
    expect(take(db, T0 + 15, alive)).toBeNull();
    expect(take(db, T0 + 29.999, alive)).toBeNull();
    expect(take(db, T0 + 30, alive)).toMatchObject({ seq: 1, status });
  });

  test("does not keep others, nor those of a dead one", () => {
    const db = memory();
    for (let n = 0; n < 3; n++) enter(db);
    take(db, T0, { holder: "alive" });
    take(db, T0, { holder: "dead" });
    expect([1, 2, 3].map(() => take(db, T0 + 15, { alive: ["alive"] })?.seq ?? null)).toEqual([3, 2, null]);
  });
});

describe("a wrong cache", () => {
  const KEYED = "UPDATE dispatch_outbox SET ready = 1 WHERE ordering_key IS NOT NULL";
  test("breaks no order: a row marked ready behind its key stays", () => {
    const db = memory();
    keyed(db, "a");
    keyed(db, "a");
    db.run(KEYED);
    expect([take(db, T0)?.seq, take(db, T0)]).toEqual([1, null]);
    expect(breaches(db, T0)).toMatchObject([{ what: "ready is not the turn", seq: 2 }]);
  });

  test("breaks no hold", () => {
    const db = memory();
    keyed(db, "a");
    db.run("INSERT INTO dispatch_holds (ordering_key, created_at, actor) VALUES ('a', 0, '')");
    db.run(KEYED);
    expect(take(db, T0)).toBeNull();
  });

  test("breaks no due time: a destination that says it is due gives nothing early", () => {
    const db = memory();
    enter(db, { not_before: T0 + 10 });
    db.run("UPDATE dispatch_destinations SET due_at = 0");
    expect(take(db, T0)).toBeNull();
    expect(take(db, T0 + 10)?.seq).toBe(1);
  });

  test("breaks no limit: claims that are not counted in the cache are counted in the claim", () => {
    const db = memory();
    for (let n = 0; n < 3; n++) enter(db);
    take(db, T0);
    db.run("UPDATE dispatch_destinations SET flight = 0");
    expect(take(db, T0, { perDestination: 1 })).toBeNull();
    db.run("UPDATE dispatch_destinations SET flight = 77");
    expect(breaches(db, T0)).toMatchObject([{ what: "flight is not between" }]);
    expect(take(db, T0, { perDestination: 2 })?.seq).toBe(2); // too high only puts it last
  });

  test("that says never, delays until the next move of its destination or key", () => {
    const db = memory();
    enter(db);
    db.run("UPDATE dispatch_destinations SET due_at = NULL");
    expect(take(db, T0)).toBeNull();
    expect(breaches(db, T0)).toMatchObject([{ what: "due_at is not the first due time", deliver_to: "seat-1" }]);
    enter(db);
    expect(take(db, T0)?.seq).toBe(1);
    db.run("DELETE FROM dispatch_destinations");
    expect(breaches(db, T0)).toMatchObject([{ what: "the destination is missing" }]);
  });
});

describe("the caches hold in every conflict mode", () => {
  test.each(["", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK"])("INSERT and UPDATE %s", (mode) => {
    const db = memory();
    db.run("INSERT INTO dispatch_holds (kind, created_at, actor) VALUES ('held', 0, '')");
    for (let n = 1; n <= 12; n++)
      db.run(
        `INSERT ${mode} INTO dispatch_outbox (id, kind, deliver_to, ordering_key, payload, next_attempt_at, created_at, updated_at, ready)
         VALUES (printf('%032x', ${n}), '${n % 5 === 0 ? "held" : "k"}', 'seat-${n % 2}', '${n % 3}', '{}', ${T0 + n}, ${T0}, ${T0}, ${n % 2})`,
      );
    expect(breaches(db, T0)).toEqual([]);
    const move = `UPDATE ${mode} dispatch_outbox SET status = $status, reason_code = $reason, lock_token = $token, attempt = $attempt, next_attempt_at = $at, updated_at = $now WHERE seq = $seq`;
    const claim = { status: "delivering", reason: "dispatch.delivering.attempt", token: "a", attempt: 1, at: T0 + 60, now: T0 };
    for (const seq of [1, 2]) db.query(move).run({ ...claim, seq });
    expect(breaches(db, T0)).toEqual([]);
    expect(db.query("SELECT flight FROM dispatch_destinations").values()).toEqual([[1], [1]]);
    db.query(move).run({ status: "acked", reason: "dispatch.acked.consumer", token: null, attempt: 1, at: T0, now: T0 + 1, seq: 1 });
    expect(breaches(db, T0 + 1)).toEqual([]);
    expect(take(db, T0 + 20)?.seq).toBe(3);
  });
});
