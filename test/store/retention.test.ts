import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import type { Status } from "../../src/core/lifecycle.ts";
import { breaches } from "../../src/store/invariants.ts";
import { openDatabase } from "../../src/store/open.ts";
import { type RetentionTerms, sweep, type SweepTerms } from "../../src/store/retention.ts";
import { createStore } from "../../src/store/store.ts";
import { note, standing } from "../../src/store/told.ts";
import { terms } from "../fixtures/store/terms.ts";
import { count, countedEntropy, enter, handClock, memory, scratch, T0 } from "../fixtures/world.ts";

const DAY = 86_400;
const WINDOWS: RetentionTerms = { deliveredS: 7 * DAY, deadLetterS: 30 * DAY, inboxS: 30 * DAY };
const isAlive = (holder: string): boolean => holder === "alive";

/** Enters a row and brings it to its end. @returns its id */
function ended(db: Database, status: Status, at: number, otherwise: Parameters<typeof enter>[1] = {}): string {
  const { id, seq } = enter(db, { ack_required: status === "acked", ...otherwise }, T0 - 1_000 * DAY);
  const claim =
    "UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 't', next_attempt_at = 1, updated_at = 1 WHERE seq = ?";
  const reason = {
    delivered: "delivered.transport_ok",
    acked: "acked.consumer",
    dead_letter: "dead_letter.rejected",
    expired: "expired.deadline",
    pending: "pending.released",
    delivering: "",
  }[status];
  db.query(claim).run(seq);
  if (status === "delivering") return id;
  db.query(
    "UPDATE dispatch_outbox SET status = ?, reason_code = ?, attempt = attempt - (? = 'pending'), lock_token = NULL, next_attempt_at = ?, updated_at = ? WHERE seq = ?",
  ).run(status, `dispatch.${reason}`, status, at, at, seq);
  return id;
}

/** Sweeps until nothing is left to remove. @returns how many batches that took */
function whole(db: Database, windows = WINDOWS, now = T0): number {
  let progress: SweepTerms["progress"] = null;
  for (let batches = 1; ; batches++) {
    const swept = sweep(db, { windows, now, isLate: () => false, isAlive, progress });
    ({ progress } = swept);
    if (!swept.more) return batches;
  }
}

const left = (db: Database): string[] =>
  db
    .query<{ status: string }, []>("SELECT status FROM dispatch_outbox ORDER BY seq")
    .all()
    .map((row) => row.status);

describe("a sweep", () => {
  test.each([
    ["delivered", 7 * DAY],
    ["acked", 7 * DAY],
    ["dead_letter", 30 * DAY],
    ["expired", 30 * DAY],
  ] as const)("removes what is %s once its window since the final move is over, to the instant", (status, window) => {
    const db = memory();
    ended(db, status, T0 - window);
    ended(db, status, T0 - window + 0.001);
    whole(db);
    expect(db.query("SELECT seq FROM dispatch_outbox").values()).toEqual([[2]]);
  });

  test("removes nothing that has not come to its end, however old", () => {
    const db = memory();
    ended(db, "pending", 1);
    ended(db, "delivering", 1);
    whole(db, { deliveredS: 1, deadLetterS: 1, inboxS: 0 });
    expect(left(db)).toEqual(["pending", "delivering"]);
    expect(count(db, "admin_events")).toBe(0);
  });

  test("of a window of 0 keeps for ever, each window by itself", () => {
    const db = memory();
    for (const status of ["delivered", "acked", "dead_letter", "expired"] as const) ended(db, status, 1);
    whole(db, { deliveredS: 0, deadLetterS: 0, inboxS: 0 });
    expect(left(db)).toHaveLength(4);
    whole(db, { deliveredS: 0, deadLetterS: 1, inboxS: 0 });
    expect(left(db)).toEqual(["delivered", "acked"]);
    whole(db, { deliveredS: 1, deadLetterS: 0, inboxS: 0 });
    expect(left(db)).toEqual([]);
  });

  test("takes the history of a dispatch along, with its dedup key, and leaves everything else", () => {
    const db = memory();
    ended(db, "delivered", 1, { dedup_key: "daily" });
    const kept = ended(db, "delivered", T0);
    whole(db);
    expect(db.query("SELECT DISTINCT entity_id FROM status_transitions").values()).toEqual([[kept]]);
    expect(enter(db, { dedup_key: "daily" }).outcome).toBe("created");
    expect(breaches(db, T0)).toEqual([]);
  });

  test("counts the dead letters that it removes", () => {
    const db = memory();
    for (const status of ["delivered", "dead_letter", "expired", "dead_letter"] as const) ended(db, status, 1);
    expect(sweep(db, { windows: WINDOWS, now: T0, isLate: () => false, isAlive, progress: null })).toMatchObject({
      removed: 4,
      deadLetters: 2,
      more: false,
    });
  });

  test("is bounded in rows, in bytes and in time, and says that there is more", () => {
    const db = memory();
    for (let n = 0; n < 450; n++) ended(db, "delivered", 1 + n);
    const one = (isLate: () => boolean) => sweep(db, { windows: WINDOWS, now: T0, isLate, isAlive, progress: null });
    expect(one(() => false)).toMatchObject({ removed: 200, more: true });
    expect(one(() => true)).toMatchObject({ removed: 1, more: true });
    for (let n = 0; n < 5; n++) ended(db, "delivered", 0, { body: { text: "x".repeat(400_000) } });
    expect(one(() => false)).toMatchObject({ removed: 3, more: true });
    expect(left(db)).toHaveLength(450 + 5 - 200 - 1 - 3);
  });

  test("takes the oldest first", () => {
    const db = memory();
    for (const at of [30, 10, 20]) ended(db, "delivered", at);
    sweep(db, { windows: WINDOWS, now: T0, isLate: () => true, isAlive, progress: null });
    expect(db.query("SELECT seq FROM dispatch_outbox ORDER BY seq").values()).toEqual([[1], [3]]);
  });

  test("writes one audit row with the counts of the whole, however many batches it took", () => {
    const db = memory();
    for (let n = 0; n < 500; n++) ended(db, n % 5 === 0 ? "expired" : "acked", 1);
    expect(whole(db)).toBe(3);
    expect(db.query("SELECT created_at, action, target_id, actor, details FROM admin_events").all()).toEqual([
      {
        created_at: T0,
        action: "dispatch.sweep",
        target_id: null,
        actor: "retention",
        details: `{"delivered":0,"acked":400,"dead_letter":0,"expired":100,"inbox":0,"ended_at":${T0}}`,
      },
    ]);
  });

  test("has its count written in the transaction that removed, so that a crash between batches leaves none out", async () => {
    const db = memory();
    const clock = handClock();
    for (let n = 0; n < 500; n++) ended(db, "delivered", 1);
    const counts = (): unknown[] => db.query("SELECT details ->> 'delivered' AS n FROM admin_events ORDER BY id").values().flat();
    const first = createStore(db, "memory", { clock, entropy: countedEntropy() });
    expect(await first.sweep(WINDOWS, isAlive)).toEqual({ removed: 200, deadLetters: 0, more: true });
    expect(counts()).toEqual([200]);
    // Another process goes on: a row of its own, whose counts go on until its sweep is over.
    const second = createStore(db, "memory", { clock, entropy: countedEntropy() });
    expect((await second.sweep(WINDOWS, isAlive)).removed).toBe(200);
    expect((await second.sweep(WINDOWS, isAlive)).removed).toBe(100);
    expect(counts()).toEqual([200, 300]);
    ended(db, "delivered", 1);
    await second.sweep(WINDOWS, isAlive);
    expect(counts()).toEqual([200, 300, 1]);
  });

  test("that fails counts nothing and begins no audit row", async () => {
    const db = memory();
    const store = createStore(db, "memory", { clock: handClock(), entropy: countedEntropy() });
    for (let n = 0; n < 300; n++) ended(db, "delivered", 1);
    db.run("CREATE TRIGGER refuse BEFORE DELETE ON dispatch_outbox WHEN OLD.seq = 150 BEGIN SELECT RAISE(ABORT, 'refused'); END");
    expect(store.sweep(WINDOWS, isAlive)).rejects.toThrow("refused");
    expect([left(db).length, count(db, "admin_events")]).toEqual([300, 0]);
    db.run("DROP TRIGGER refuse");
    await store.sweep(WINDOWS, isAlive);
    expect(db.query("SELECT details ->> 'delivered' FROM admin_events").values()).toEqual([[200]]);
  });

  test("writes nothing when there is nothing to remove", () => {
    const db = memory();
    ended(db, "delivered", T0);
    const before = db.query("SELECT total_changes()").values();
    whole(db);
    expect(db.query("SELECT total_changes()").values()).toEqual(before);
  });

  test("leaves a file that stops growing: later rows get the freed pages", async () => {
    using dir = scratch();
    const path = dir.file("a.db");
    const db = await openDatabase(terms(path));
    db.run("PRAGMA synchronous = OFF");
    const clock = handClock();
    const store = createStore(db, path, { clock, entropy: countedEntropy() });
    const sizes: number[] = [];
    for (let round = 0; round < 3; round++) {
      db.transaction(() => {
        for (let n = 0; n < 2_000; n++) enter(db, { deliver_to: `seat-${n % 20}`, body: { text: "x".repeat(200) } }, clock.now());
        db.run(
          `UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 't', updated_at = ${clock.now()}`,
        );
        db.run(`UPDATE dispatch_outbox SET status = 'delivered', reason_code = 'dispatch.delivered.transport_ok', lock_token = NULL`);
      })();
      clock.pass(8 * DAY);
      while ((await store.sweep(WINDOWS, isAlive)).more);
      expect(left(db)).toEqual([]);
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      sizes.push(statSync(path).size);
    }
    const [first = 0] = sizes;
    for (const size of sizes) expect(size).toBeLessThanOrEqual(first * 1.05);
    await store.close();
  }, 20_000);
});

describe("of inboxes a sweep", () => {
  const FOREVER = { deliveredS: 0, deadLetterS: 0, inboxS: 30 * DAY };
  const idOf = (n: number): string => n.toString(16).padStart(32, "0");

  /** An entry that was done, or begun by this holder, then. */
  function entry(db: Database, id: string, at: number, holder: string | null = null): void {
    db.query(
      "INSERT INTO dispatch_inbox (consumer, dispatch_id, begun_at, holder, token, done_at) VALUES ('c', $id, $at - 5 * ($holder IS NULL), $holder, $holder, iif($holder IS NULL, $at, NULL))",
    ).run({ id, at, holder });
  }
  const kept = (db: Database): unknown[] => db.query("SELECT dispatch_id FROM dispatch_inbox ORDER BY 1").values().flat();
  const audited = (db: Database): unknown[] => db.query("SELECT details ->> 'inbox' FROM admin_events ORDER BY id").values().flat();

  test("forgets what was done before its window, to the instant, and says how many in its audit row", () => {
    const db = memory();
    entry(db, idOf(1), T0 - 30 * DAY);
    entry(db, idOf(2), T0 - 30 * DAY + 0.001);
    entry(db, idOf(3), T0 - 90 * DAY);
    whole(db, FOREVER);
    expect(kept(db)).toEqual([idOf(2)]);
    expect(audited(db)).toEqual([2]);
  });

  test("of a window of 0 keeps for ever, and writes nothing where nothing goes", () => {
    const db = memory();
    entry(db, idOf(1), 1);
    whole(db, { ...FOREVER, inboxS: 0 });
    whole(db, { ...FOREVER, inboxS: 9e9 });
    expect(kept(db)).toEqual([idOf(1)]);
    expect(count(db, "admin_events")).toBe(0);
  });

  test("keeps what was begun by a process that lives, and for a day what was begun elsewhere", () => {
    const db = memory();
    entry(db, idOf(1), T0 - 90 * DAY, "alive");
    entry(db, idOf(2), T0 - 90 * DAY, "gone");
    entry(db, idOf(3), T0 - DAY, "unknown");
    entry(db, idOf(4), T0 - DAY + 1, "unknown");
    whole(db, { ...FOREVER, inboxS: 60 });
    expect(kept(db)).toEqual([idOf(1), idOf(4)]);
  });

  test("keeps the record of a message that has not come to its end, and no longer", () => {
    const db = memory();
    const ids = (["pending", "delivering", "dead_letter", "delivered"] as const).map((status) => ended(db, status, 1));
    for (const id of ids) entry(db, id, 1);
    whole(db, FOREVER);
    expect(new Set(kept(db))).toEqual(new Set(ids.slice(0, 2)));
  });

  test("goes on in small batches, past any number that it has to keep, with one audit row", () => {
    const db = memory();
    db.transaction(() => {
      for (let n = 0; n < 450; n++) entry(db, idOf(n), 1, "alive");
      for (let n = 450; n < 900; n++) entry(db, idOf(n), 2);
    })();
    expect(whole(db, FOREVER)).toBe(5);
    expect(kept(db)).toHaveLength(450);
    expect(audited(db)).toEqual([450]);
  });

  test("takes its place in a batch behind the messages", () => {
    const db = memory();
    for (let n = 0; n < 201; n++) ended(db, "delivered", 1);
    entry(db, idOf(1), 1);
    const first = sweep(db, { windows: WINDOWS, now: T0, isLate: () => false, isAlive, progress: null });
    expect([first.removed, first.more, kept(db).length]).toEqual([200, true, 1]);
    const second = sweep(db, { windows: WINDOWS, now: T0, isLate: () => false, isAlive, progress: first.progress });
    expect([second.removed, second.more, kept(db).length]).toEqual([2, false, 0]);
  });
});

describe("what a sweep forgets besides", () => {
  const names = (db: Database): unknown[] => db.query("SELECT deliver_to FROM dispatch_destinations ORDER BY 1").values().flat();

  test("are destinations that nothing waits for and that have nothing to remember", () => {
    const db = memory();
    ended(db, "delivered", 1, { deliver_to: "idle" });
    ended(db, "delivered", T0, { deliver_to: "idle, its row kept" });
    ended(db, "delivering", 1, { deliver_to: "claimed" });
    for (const to of ["waiting", "failed lately", "failed long ago", "open", "open long ago"]) enter(db, { deliver_to: to });
    db.run(
      "UPDATE dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled' WHERE deliver_to LIKE 'failed%' OR deliver_to LIKE 'open%'",
    );
    db.run(
      `UPDATE dispatch_destinations SET failures = 1, failed_at = ${T0} - iif(deliver_to LIKE '%ago', 2, 0) * ${DAY} WHERE deliver_to LIKE 'failed%' OR deliver_to LIKE 'open%'`,
    );
    db.run("UPDATE dispatch_destinations SET open_until = failed_at + 60 WHERE deliver_to LIKE 'open%'");
    whole(db);
    expect(names(db)).toEqual(["claimed", "failed lately", "open", "waiting"]);
    expect(breaches(db, T0)).toEqual([]);
  });

  test("is nothing while it removes nothing, so that an idle outbox does not write", () => {
    const db = memory();
    ended(db, "delivered", T0);
    whole(db);
    expect(names(db)).toEqual(["seat-1"]);
  });

  test("comes back with the next row, and a held row does not need it", () => {
    const db = memory();
    db.run("INSERT INTO dispatch_holds (deliver_to, created_at, actor) VALUES ('a', 0, '')");
    enter(db, { deliver_to: "a" });
    ended(db, "delivered", 1, { deliver_to: "b" });
    whole(db);
    expect(names(db)).toEqual([]);
    db.run("DELETE FROM dispatch_holds");
    expect(names(db)).toEqual(["a"]);
    expect(breaches(db, T0)).toEqual([]);
  });

  test("are topics that nobody has told for a week", () => {
    const db = memory();
    note(db, "old", "t", T0 - 7 * DAY);
    note(db, "new", "t", T0 - 7 * DAY + 1);
    ended(db, "delivered", 1);
    whole(db);
    expect(standing(db, "")).toEqual(["new"]);
  });
});
