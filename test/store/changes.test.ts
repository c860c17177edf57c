/** Changing all that a filter names: what is changed and what refused, in which steps, and what the audit says. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Status } from "../../src/core/lifecycle.ts";
import { CHANGEABLE, type Change, changeAll, type ChangeTerms, countRefused } from "../../src/store/changes.ts";
import { hold, noteFailure } from "../../src/store/gates.ts";
import { breaches } from "../../src/store/invariants.ts";
import { list } from "../../src/store/queries.ts";
import type { Selection } from "../../src/store/selection.ts";
import { createStore, type ManyTerms, type Step } from "../../src/store/store.ts";
import { countedEntropy, enter, handClock, memory, row, T0, take } from "../fixtures/world.ts";

const NOW = T0 + 100;
const VERBS: Readonly<Record<Change["verb"], Change>> = {
  retry: { verb: "retry", dueAt: null, gapS: 0, expiresAt: null },
  cancel: { verb: "cancel" },
  purge: { verb: "purge", force: false },
};

/** Every status in several kinds, destinations and keys; live and stale claims; expiries ahead and past. */
function crowd(): Database {
  const db = memory();
  const finish = (status: Status, reason: string): void =>
    void db.run(
      `UPDATE dispatch_outbox SET status = ?, reason_code = ?, lock_token = NULL, holder = NULL, last_error = 'it broke', updated_at = ${T0} + seq WHERE status = 'delivering'`,
      [status, reason],
    );
  const some = (n: number, request: Parameters<typeof enter>[1] = {}): void => {
    for (let at = 0; at < n; at++)
      enter(db, { kind: `kind-${at % 3}`, deliver_to: `seat-${at % 4}`, ordering_key: at % 5 === 0 ? `key-${at % 2}` : null, ...request });
  };
  const claimed = (n: number, request: Parameters<typeof enter>[1] = {}): void => {
    some(n, { ordering_key: null, ...request });
    for (let at = 0; at < n; at++) take(db, T0);
  };
  claimed(12, { expires_at: NOW - 50 });
  finish("dead_letter", "dispatch.dead_letter.rejected");
  claimed(24);
  finish("dead_letter", "dispatch.dead_letter.max_attempts");
  claimed(12);
  finish("delivered", "dispatch.delivered.transport_ok");
  some(15);
  changeAll(db, { change: VERBS.cancel, selection: {}, actor: "somebody", dryRun: false }, T0 + 1);
  claimed(6); // their leases are over by NOW
  claimed(6, { dedup_key: null });
  db.run(`UPDATE dispatch_outbox SET next_attempt_at = ${NOW + 10} WHERE status = 'delivering' AND seq % 2 = 0`);
  some(30);
  enter(db, { kind: "kind-0", deliver_to: "seat-1", dedup_key: "once" });
  hold(db, { deliverTo: null, kind: "kind-1", orderingKey: null }, { now: T0, actor: "anna", note: null, endsAt: null });
  noteFailure(db, "seat-2", { failures: 1, cooldownS: 1_000 }, T0);
  db.run("DELETE FROM admin_events");
  return db;
}

const SELECTIONS: readonly (readonly [string, Selection])[] = [
  ["everything", {}],
  ["a kind", { kind: ["kind-1"] }],
  ["two kinds of a destination", { kind: ["kind-1", "kind-2"], to: ["seat-1"] }],
  ["an ordering key", { orderingKey: ["key-0", "key-0"] }],
  ["a dedup key", { dedupKey: ["once", "once", "none"] }],
  ["a reason", { reason: ["max_attempts", "attempt"] }],
  ["a time", { since: T0 + 15, before: T0 + 40 }],
  ["nothing that there is", { to: ["nobody"] }],
];

const audits = (db: Database): { action: string; target_id: string | null; details: Record<string, unknown> }[] =>
  db
    .query<{ action: string; target_id: string | null; details: string }, []>(
      "SELECT action, target_id, details FROM admin_events ORDER BY id",
    )
    .all()
    .map((event) => ({ ...event, details: JSON.parse(event.details) as Record<string, unknown> }));
const everything = (db: Database): unknown =>
  ["dispatch_outbox", "status_transitions", "admin_events", "dispatch_destinations"].map((table) =>
    db.query(`SELECT * FROM ${table}`).all(),
  );
const terms = (change: Change, selection: Selection, dryRun = false): ChangeTerms => ({ change, selection, actor: "anna", dryRun });

describe.each(Object.entries(VERBS))("%s", (_name, change) => {
  test.each(SELECTIONS)("of %s does what its plain reading says, a dry run counts the same and writes nothing", (_, selection) => {
    const db = crowd();
    // The plain reading: every row that matches, by the list, one after the other.
    const { any, untold } = CHANGEABLE[change.verb];
    const meant = list(db, { selection: { ...selection, status: untold }, limit: 0, oldestFirst: true, after: null });
    const isLive = (each: (typeof meant)[number]): boolean => each.status === "delivering" && each.next_attempt_at > NOW;
    const isPast = (each: (typeof meant)[number]): boolean => change.verb === "retry" && each.expires_at !== null && each.expires_at <= NOW;
    const may = meant.filter((each) => !isLive(each) && !isPast(each)).map(({ seq }) => seq);
    const before = everything(db);
    const dry = changeAll(db, terms(change, selection, true), NOW);
    expect(everything(db)).toEqual(before);
    const done = changeAll(db, terms(change, selection), NOW);
    expect([dry.changed, dry.refused]).toEqual([done.changed, done.refused]);
    expect([done.changed, countRefused(done.refused)]).toEqual([may.length, meant.length - may.length]);
    const left = list(db, { selection: { status: any, reason: [] }, limit: 0, oldestFirst: true, after: null }).map(({ seq }) => seq);
    const moved = db.query<{ seq: number }, []>(`SELECT seq FROM dispatch_outbox WHERE actor = 'anna' ORDER BY seq`).all();
    if (change.verb === "purge") expect(left.filter((seq) => may.includes(seq))).toEqual([]);
    else expect(moved.map(({ seq }) => seq)).toEqual(may);
    expect(audits(db).map(({ action, target_id, details }) => [action, target_id, details["changed"], details["refused"]])).toEqual(
      may.length === 0 ? [] : [[`dispatch.${change.verb}`, null, may.length, meant.length - may.length]],
    );
    expect(breaches(db, NOW)).toEqual([]);
  });
});

describe("what is changed", () => {
  test("retry keeps the error and the place in the key, and begins anew at attempt 0", () => {
    const db = crowd();
    const { seq } = list(db, { selection: { reason: ["max_attempts"] }, limit: 1, oldestFirst: true, after: null })[0] ?? { seq: 0 };
    changeAll(db, terms(VERBS.retry, { reason: ["max_attempts"] }), NOW);
    expect(row(db, seq)).toMatchObject({
      seq,
      status: "pending",
      attempt: 0,
      last_error: "it broke",
      next_attempt_at: NOW,
      source: "operator",
    });
  });

  test("retry spreads the due times, the oldest first and at once; what would be due after its expiry is refused and leaves no gap", () => {
    const db = crowd();
    const first = list(db, { selection: { reason: ["rejected"] }, limit: 0, oldestFirst: true, after: null })[2]?.seq ?? 0;
    db.run(`UPDATE dispatch_outbox SET expires_at = ${NOW + 1_000}`);
    db.run(`UPDATE dispatch_outbox SET expires_at = ${NOW + 3} WHERE seq = ${first}`);
    const done = changeAll(db, terms({ verb: "retry", dueAt: null, gapS: 2, expiresAt: null }, { reason: ["rejected"] }), NOW);
    expect([done.changed, done.refused.expires_first]).toEqual([11, 1]);
    const due = db.query<{ at: number }, []>("SELECT next_attempt_at AS at FROM dispatch_outbox WHERE actor = 'anna' ORDER BY seq").all();
    expect(due.map(({ at }) => at)).toEqual(Array.from({ length: 11 }, (_, n) => NOW + 2 * n));
  });

  test("retry with a new expiry takes also what has passed its own", () => {
    const db = crowd();
    expect(changeAll(db, terms(VERBS.retry, { reason: ["rejected"] }), NOW).refused.past_expiry).toBe(12);
    expect(changeAll(db, terms({ ...VERBS.retry, expiresAt: NOW + 60 } as Change, { reason: ["rejected"] }), NOW).changed).toBe(12);
  });

  test("purge takes a live row only where its status is named, by force", () => {
    const db = crowd();
    const live = list(db, { selection: { status: ["delivering"] }, limit: 0, oldestFirst: true, after: null }).length;
    expect(changeAll(db, terms({ verb: "purge", force: true }, {}), NOW).refused.live).toBe(0);
    expect(list(db, { selection: { status: ["delivering"] }, limit: 0, oldestFirst: true, after: null }).length).toBe(live);
    expect(changeAll(db, terms({ verb: "purge", force: false }, { status: ["delivering"] }), NOW)).toMatchObject({
      changed: 6,
      refused: { live: 6 },
    });
    expect(changeAll(db, terms({ verb: "purge", force: true }, { status: ["delivering"] }), NOW)).toMatchObject({
      changed: 6,
      refused: { live: 0 },
    });
    expect(breaches(db, NOW)).toEqual([]);
  });

  test("the audit row has the filter and the terms in the names of columns", () => {
    const db = crowd();
    changeAll(db, terms({ verb: "retry", dueAt: null, gapS: 0.2, expiresAt: NOW + 900 }, { to: ["seat-1"], kind: [], since: 0 }), NOW);
    changeAll(db, terms({ verb: "purge", force: true }, {}), NOW);
    expect(audits(db).map(({ details }) => details)).toEqual([
      {
        filter: { since: 0, deliver_to: ["seat-1"] },
        gap_seconds: 0.2,
        expires_at: NOW + 900,
        changed: expect.any(Number),
        refused: 0,
        ended_at: NOW,
      },
      { all: true, forced: true, changed: expect.any(Number), refused: 0, ended_at: NOW },
    ]);
  });
});

describe("in steps", () => {
  /** A clock by which each look takes so long that a step changes a row or two. */
  function slowly(db: Database) {
    let ms = 0;
    const clock = { ...handClock(NOW), monotonicMs: () => (ms += 25) };
    return createStore(db, ":memory:", { clock, entropy: countedEntropy() });
  }
  const many: ManyTerms = { selection: {}, change: { verb: "cancel" }, actor: "anna", dryRun: false };

  test("each is whole, counts up in one audit row, and what comes in meanwhile is left alone", async () => {
    const db = crowd();
    const change = slowly(db).changeMany(many);
    const steps: Step[] = [];
    do {
      const step = await change.next();
      steps.push(step);
      expect(db.query<{ n: number }, []>("SELECT count(*) AS n FROM dispatch_outbox WHERE actor = 'anna'").get()?.n).toBe(step.changed);
      expect(audits(db).map(({ details }) => details["changed"])).toEqual(step.changed === 0 ? [] : [step.changed]);
      expect(breaches(db, NOW)).toEqual([]);
      if (steps.length < 20) enter(db, {}, NOW);
    } while (steps.at(-1)?.done !== true);
    expect(steps.length).toBeGreaterThan(10);
    expect(steps.at(-1)).toMatchObject({ changed: 37, refused: { live: 6 } });
    expect(db.query<{ n: number }, []>("SELECT count(*) AS n FROM dispatch_outbox WHERE status = 'pending'").get()?.n).toBe(19);
  });

  test("a row that a runner takes meanwhile is refused, and one that no longer matches is neither changed nor refused", async () => {
    const db = crowd();
    const change = slowly(db).changeMany({ ...many, selection: { status: ["pending"] } });
    await change.next();
    const last = db.query<{ seq: number }, []>("SELECT max(seq) AS seq FROM dispatch_outbox").get()?.seq ?? 0;
    db.run(`UPDATE dispatch_outbox SET status = 'delivering', attempt = 1, lock_token = 'x', next_attempt_at = ${NOW + 60}, updated_at = ${NOW},
      reason_code = 'dispatch.delivering.attempt' WHERE seq = ${last}`);
    let step = await change.next();
    while (!step.done) step = await change.next();
    expect(step).toMatchObject({ changed: 30, refused: { live: 0 } });
    expect(row(db, last).status).toBe("delivering");
  });

  test("one that fails changes nothing and counts nothing, and can be asked for again", async () => {
    const db = crowd();
    const change = slowly(db).changeMany(many);
    const first = await change.next();
    db.run("CREATE TRIGGER stop BEFORE UPDATE ON dispatch_outbox BEGIN SELECT RAISE(ABORT, 'not now'); END");
    const before = everything(db);
    expect(await change.next().catch(() => "failed")).toBe("failed");
    expect(everything(db)).toEqual(before);
    db.run("DROP TRIGGER stop");
    expect((await change.next()).changed).toBeGreaterThan(first.changed);
    let step = await change.next();
    while (!step.done) step = await change.next();
    expect(step.changed).toBe(37);
    expect(audits(db).map(({ details }) => details["changed"])).toEqual([37]);
  });

  test("a rate holds over all of them", async () => {
    const db = crowd();
    const change = slowly(db).changeMany({
      ...many,
      selection: { reason: ["max_attempts"] },
      change: { verb: "retry", gapS: 5, expiresInS: null },
    });
    let step = await change.next();
    while (!step.done) step = await change.next();
    expect(step).toMatchObject({ changed: 24, lastDueAt: NOW + 5 * 23 });
    const due = db.query<{ at: number }, []>("SELECT next_attempt_at AS at FROM dispatch_outbox WHERE actor = 'anna' ORDER BY seq").all();
    expect(due.map(({ at }) => at)).toEqual(Array.from({ length: 24 }, (_, n) => NOW + 5 * n));
  });

  test("where nothing matches, nothing is locked and nothing written", async () => {
    const db = crowd();
    db.run("PRAGMA query_only = ON");
    expect(
      await slowly(db)
        .changeMany({ ...many, selection: { to: ["nobody"] } })
        .next(),
    ).toMatchObject({ changed: 0 });
  });
});

test("dead letters come page by page, the oldest first, without payload and tokens", () => {
  const db = crowd();
  const selection: Selection = { status: ["dead_letter"] };
  const seen: number[] = [];
  for (;;) {
    const rows = list(db, { selection, limit: 7, oldestFirst: true, after: seen.at(-1) ?? null });
    for (const each of rows) {
      expect(Object.keys(each)).not.toContainAnyValues(["payload", "ack_token", "lock_token"]);
      seen.push(each.seq);
    }
    if (rows.length < 7) break;
  }
  expect(seen).toEqual(Array.from({ length: 36 }, (_, at) => at + 1));
});
