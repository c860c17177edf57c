import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { OutboxError } from "../../src/core/errors.ts";
import { checkRequest, type EnqueueRequest } from "../../src/core/request.ts";
import { createStore, type Exchange, openStore, type Store } from "../../src/store/store.ts";
import { sqliteCode } from "../../src/store/failed.ts";
import { asTrouble } from "../../src/store/trouble.ts";
import { terms } from "../fixtures/store/terms.ts";
import { count, countedEntropy, handClock, memory, POLICY, row, scratch, T0 } from "../fixtures/world.ts";

function world() {
  const db = memory();
  const clock = handClock();
  return { db, clock, store: createStore(db, "memory", { clock, entropy: countedEntropy() }) };
}
const request = (otherwise: Partial<EnqueueRequest> = {}) => checkRequest({ kind: "ping", deliver_to: "seat-1", ...otherwise });
const NOTHING: Exchange = { settle: [], renew: [], claim: null, holder: "desk 1 1", circuit: { failures: 5, cooldownS: 60 } };
const claim = (otherwise: Partial<NonNullable<Exchange["claim"]>> = {}): Exchange => ({
  ...NOTHING,
  claim: {
    dueBy: null,
    atMost: 8,
    fallbackLeaseS: 15,
    kinds: new Map(),
    perDestination: 100,
    inHand: [],
    isAlive: () => false,
    ...otherwise,
  },
});
const REPORT = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
const BY = { actor: "anna", dryRun: false };

describe("enqueue", () => {
  test("answers each request in order, in one transaction", async () => {
    const { store } = world();
    const answers = await store.enqueue([request({ dedup_key: "a" }), request(), request({ dedup_key: "a" })]);
    expect(answers.map((answer) => [answer.seq, answer.outcome])).toEqual([
      [1, "created"],
      [2, "created"],
      [1, "duplicate"],
    ]);
  });

  test("of what has to be new stores all, or nothing and says which is known", async () => {
    const { db, store } = world();
    expect(await store.enqueueNew([request({ dedup_key: "a" }), request()])).toMatchObject({
      outcome: "created",
      answers: [{ seq: 1 }, { seq: 2 }],
    });
    const known = await store.enqueueNew([request({ dedup_key: "b" }), request({ dedup_key: "a" }), request({ dedup_key: "c" })]);
    expect(known).toMatchObject({ outcome: "known", at: 1, answer: { seq: 1, outcome: "duplicate" } });
    expect(await store.enqueueNew([request({ dedup_key: "b" }), request({ dedup_key: "b" })])).toMatchObject({ outcome: "known", at: 1 });
    expect(count(db, "dispatch_outbox")).toBe(2);
  });

  test("stores all or nothing", async () => {
    const { db, store } = world();
    db.run("CREATE TRIGGER refuse BEFORE INSERT ON dispatch_outbox WHEN NEW.kind = 'bad' BEGIN SELECT RAISE(ABORT, 'refused'); END");
    expect(store.enqueue([request(), request({ kind: "bad" })])).rejects.toThrow("refused");
    expect(count(db, "dispatch_outbox")).toBe(0);
  });
});

describe("exchange", () => {
  test("reads the clock anew for each settlement and each claim", async () => {
    const { db, clock } = world();
    const now = (): number => {
      clock.pass(1);
      return clock.now();
    };
    const store = createStore(db, "memory", { clock: { ...clock, now, monotonicMs: () => 0 }, entropy: countedEntropy() });
    await store.enqueue([request(), request(), request(), request()]);
    const { taken } = await store.exchange(claim({ atMost: 2 }));
    expect((taken[1]?.updated_at ?? 0) - (taken[0]?.updated_at ?? 0)).toBe(1);
    expect(taken.map((each) => each.next_attempt_at - each.updated_at)).toEqual([15, 15]);
    const failed = { kind: "failed", report: { ...REPORT, exit: 1 }, error: "exit 1", retryAfterMs: null } as const;
    await store.exchange({ ...claim({ atMost: 2 }), settle: taken.map((each) => ({ claim: each, outcome: failed, policy: POLICY })) });
    const [first, second, third, fourth] = [1, 2, 3, 4].map((seq) => row(db, seq));
    expect((second?.updated_at ?? 0) - (first?.updated_at ?? 0)).toBe(1);
    expect((second?.next_attempt_at ?? 0) - (first?.next_attempt_at ?? 0)).toBe(1);
    expect(third?.updated_at).toBeGreaterThan(second?.updated_at ?? Infinity);
    expect((fourth?.updated_at ?? 0) - (third?.updated_at ?? 0)).toBe(1);
  });

  test("claims no more than asked for", async () => {
    const { store } = world();
    await store.enqueue(Array.from({ length: 5 }, () => request()));
    expect((await store.exchange(claim({ atMost: 2 }))).taken.map((taken) => taken.seq)).toEqual([1, 2]);
    expect((await store.exchange(claim({ atMost: 0 }))).taken).toEqual([]);
    expect((await store.exchange(claim())).taken.map((taken) => taken.seq)).toEqual([3, 4, 5]);
  });

  test("rows that end cost no place, but one transaction ends only so many", async () => {
    const { store } = world();
    await store.enqueue([...Array.from({ length: 300 }, () => request({ expires_at: T0 - 1 })), request({ not_before: T0 })]);
    const first = await store.exchange(claim({ atMost: 1 }));
    expect(first.taken.map((taken) => taken.status)).toEqual(Array(256).fill("expired"));
    const second = await store.exchange(claim({ atMost: 1 }));
    expect(second.taken.map((taken) => taken.status)).toEqual([...Array(44).fill("expired"), "delivering"]);
  });

  test("settles before it claims, so that what was put back at once is taken again", async () => {
    const { store } = world();
    await store.enqueue([request()]);
    const [first] = (await store.exchange(claim())).taken;
    if (first === undefined) throw new Error("nothing was claimed");
    const outcome = { kind: "released", error: "the machine is out of processes", exhausted: true } as const;
    const exchanged = await store.exchange({ ...claim(), settle: [{ claim: first, outcome, policy: POLICY }] });
    expect(exchanged.settled.map(({ result, move }) => [result, move.reason])).toEqual([["applied", "dispatch.pending.released"]]);
    expect(exchanged.taken).toMatchObject([{ seq: 1, attempt: 1, status: "delivering" }]);
    expect(exchanged.taken[0]?.lock_token).not.toBe(first.lock_token);
  });

  test("settles without claiming", async () => {
    const { store, db } = world();
    await store.enqueue([request(), request()]);
    const { taken } = await store.exchange(claim({ atMost: 1 }));
    const settle = taken.map((one) => ({ claim: one, outcome: { kind: "ok", report: REPORT } as const, policy: POLICY }));
    expect(await store.exchange({ ...NOTHING, settle })).toMatchObject({
      settled: [{ result: "applied" }],
      taken: [],
    });
    expect([row(db, 1).status, row(db, 2).status]).toEqual(["delivered", "pending"]);
  });

  test("settles a claim of before when the schema has turned newer, and claims no more", async () => {
    const { store, db } = world();
    await store.enqueue([request(), request()]);
    const { taken, outdated } = await store.exchange(claim({ atMost: 1 }));
    expect(outdated).toBe(false);
    db.run("UPDATE dispatch_schema SET version = 99");
    const settle = taken.map((one) => ({ claim: one, outcome: { kind: "ok", report: REPORT } as const, policy: POLICY }));
    expect(await store.exchange({ ...claim(), settle })).toMatchObject({ settled: [{ result: "applied" }], taken: [], outdated: true });
  });
});

describe("the other methods", () => {
  async function dead(): Promise<{ store: Store; db: Database; id: string; clock: ReturnType<typeof handClock> }> {
    const { store, db, clock } = world();
    const [answer] = await store.enqueue([request({ max_attempts: 1, expires_at: T0 + 60, dedup_key: "k" })]);
    const { taken } = await store.exchange(claim());
    const outcome = { kind: "failed", report: { ...REPORT, exit: 1 }, error: "exit 1", retryAfterMs: null } as const;
    await store.exchange({ ...NOTHING, settle: taken.map((one) => ({ claim: one, outcome, policy: POLICY })) });
    clock.pass(100);
    return { store, db, clock, id: answer?.id ?? "" };
  }

  test("find tells row, history and audit", async () => {
    const { store, id } = await dead();
    await store.purge({ id }, { ...BY, dryRun: true, force: false });
    const found = await store.find({ id });
    expect(found?.row).toMatchObject({ seq: 1, status: "dead_letter" });
    expect(found?.history.map((move) => move.status)).toEqual(["pending", "delivering", "dead_letter"]);
    expect(found?.audit).toEqual([]);
    expect(await store.find({ seq: 2 })).toBeNull();
  });

  test("retry counts its seconds from now, those of the expiry too", async () => {
    const { store, db } = await dead();
    expect((await store.retry({ seq: 1 }, { ...BY, dueInS: 5, expiresInS: null })).outcome).toBe("past_expiry");
    expect((await store.retry({ seq: 1 }, { ...BY, dueInS: 5, expiresInS: 5 })).outcome).toBe("expires_first");
    expect((await store.retry({ seq: 1 }, { ...BY, dueInS: 5, expiresInS: 60 })).outcome).toBe("changed");
    expect(row(db, 1)).toMatchObject({ status: "pending", next_attempt_at: T0 + 105, expires_at: T0 + 160 });
    expect(await store.nextMoment()).toBe(T0 + 105);
    expect((await store.figures()).depth).toBe(1);
    expect((await store.cancel({ seq: 1 }, BY)).outcome).toBe("changed");
    expect(await store.ack({ seq: 1 }, "x")).toBe("not_requested");
    expect(await store.list({ selection: { reason: ["cancelled"] }, limit: 0, oldestFirst: false, after: null })).toHaveLength(1);
  });
});

test("what was purged is in neither file once the store is closed", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const secret = "a very private message ".repeat(400);
  const holds = async (): Promise<boolean[]> =>
    Promise.all(
      [path, `${path}-wal`].map(
        async (file) => (await Bun.file(file).exists()) && (await Bun.file(file).text()).includes("a very private"),
      ),
    );
  const reader = new Database(path, { create: true }); // keeps the log from being removed
  const store = await openStore(terms(path), { clock: handClock(), entropy: countedEntropy() });
  await store.enqueue([request({ body: { secret } })]);
  reader.query("SELECT count(*) FROM dispatch_outbox").get();
  expect(await holds()).toContain(true);
  await store.purge({ seq: 1 }, { ...BY, force: false });
  await store.close();
  expect(await holds()).toEqual([false, false]);
  expect(statSync(`${path}-wal`).size).toBe(0);
  reader.close();
});

test("a method tells a lock as busy, with the path and what to do", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const store = await openStore(terms(path, { busyMs: 10 }), { clock: handClock(), entropy: countedEntropy() });
  using other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  const error: unknown = await store.enqueue([request()]).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(OutboxError);
  expect(error).toMatchObject({
    kind: "busy",
    hint: "try again",
    message: `database ${path}: another process holds its write lock`,
  });
  other.run("ROLLBACK");
  expect(await store.enqueue([request()])).toHaveLength(1); // the handle is still good
  await store.close();
});

test("asTrouble() leaves alone what is no SQLite error", () => {
  const ours = new OutboxError("no", "no");
  const other = new TypeError("x");
  expect([asTrouble(ours, "p"), asTrouble(other, "p"), asTrouble("x", "p")]).toEqual([ours, other, "x"]);
  expect([sqliteCode(other), sqliteCode("x")]).toEqual([null, null]);
});

test.each([
  [5, "busy"],
  [517, "busy"],
  [6, "busy"],
  [8, "permission"],
  [1544, "permission"],
  [10, "io"],
  [778, "io"],
  [11, "io"],
  [13, "io"],
  [14, "io"],
  [15, "io"],
  [18, "data"],
  [26, "io"],
  [1, "bug"],
] as const)("asTrouble() turns SQLite's code %p into %s", (errno, kind) => {
  const error = Object.assign(new Error("words of SQLite"), { name: "SQLiteError", errno });
  const trouble = asTrouble(error, "a.db");
  expect(trouble).toMatchObject({ kind, message: expect.stringContaining("a.db") });
  expect(trouble instanceof OutboxError ? trouble.cause : null).toBe(error);
});

describe("a refusal by a constraint or trigger", () => {
  const shop = (sql: string) => {
    const { db, store } = world();
    db.run(sql);
    return { db, store };
  };
  test.each([
    [
      "a trigger",
      "CREATE TRIGGER stop BEFORE INSERT ON dispatch_outbox BEGIN SELECT RAISE(ABORT, 'the shop is closed'); END",
      "the shop is closed",
    ],
    [
      "a table that a trigger fills",
      `CREATE TABLE log (n INTEGER CONSTRAINT n_is_small CHECK (n < 0)) STRICT;
       CREATE TRIGGER note AFTER INSERT ON dispatch_outbox BEGIN INSERT INTO log VALUES (NEW.seq); END`,
      "CHECK constraint failed: n_is_small",
    ],
    [
      "a unique column of such a table",
      `CREATE TABLE log (n INTEGER UNIQUE) STRICT; INSERT INTO log VALUES (1);
       CREATE TRIGGER note AFTER INSERT ON dispatch_outbox BEGIN INSERT INTO log VALUES (NEW.seq); END`,
      "UNIQUE constraint failed: log.n",
    ],
  ])("of the program's own, by %s, is told in its words and no bug of ours", async (_, sql, words) => {
    const { db, store } = shop(sql);
    expect(store.enqueue([request()])).rejects.toMatchObject({
      kind: "io",
      message: `database memory: a rule of its own refuses this (${words})`,
    });
    expect(count(db, "dispatch_outbox")).toBe(0);
  });
  test.each([
    "dispatch: this move is not in the lifecycle",
    "CHECK constraint failed: lock_token_if_and_only_if_delivering",
    "CHECK constraint failed: ready_is_0_or_1",
    "NOT NULL constraint failed: dispatch_outbox.kind",
    "UNIQUE constraint failed: status_transitions.id",
    "cannot store TEXT value in REAL column admin_events.created_at",
  ])("of ours is a bug: %s", (words) => {
    const error = Object.assign(new Error(words), { name: "SQLiteError", errno: 275 });
    expect(asTrouble(error, "a.db")).toMatchObject({ kind: "bug", hint: "please report it" });
  });
});

describe("renewal", () => {
  test("gives a claim in hand another lease under its token, without a row of history; what is lost stays lost", async () => {
    const { store, db, clock } = world();
    await store.enqueue([request(), request()]);
    const { taken } = await store.exchange(claim());
    const renew = taken.map(({ seq, lock_token: token }) => ({ seq, lockToken: seq === 1 ? (token ?? "") : "another", leaseS: 20 }));
    clock.pass(10);
    const before = count(db, "status_transitions");
    expect((await store.exchange({ ...NOTHING, renew })).renewed).toEqual([true, false]);
    expect([row(db, 1).next_attempt_at, row(db, 2).next_attempt_at]).toEqual([T0 + 30, T0 + 15]);
    expect(count(db, "status_transitions")).toBe(before);
    clock.pass(19);
    expect((await store.exchange(claim())).taken.map((one) => one.seq)).toEqual([2]);
  });

  test("of what a consumer acknowledged, or another runner took over, is refused", async () => {
    const { store, clock } = world();
    const [answer] = await store.enqueue([request({ ack_required: true }), request()]);
    const { taken } = await store.exchange(claim());
    await store.ack({ seq: 1 }, answer?.ack_token ?? "");
    clock.pass(15);
    await store.exchange({ ...claim(), holder: "desk 2 2" });
    const renew = taken.map(({ seq, lock_token: token }) => ({ seq, lockToken: token ?? "", leaseS: 20 }));
    expect((await store.exchange({ ...NOTHING, renew })).renewed).toEqual([false, false]);
  });

  test("settles, renews and claims in one commit, each place filled by what became free", async () => {
    const { store, db } = world();
    await store.enqueue([request(), request(), request()]);
    const first = await store.exchange(claim({ perDestination: 2 }));
    expect(first.taken.map((one) => one.seq)).toEqual([1, 2]);
    const [done, on] = first.taken;
    if (done === undefined || on === undefined) throw new Error("nothing was claimed");
    const outcome = { kind: "ok", report: REPORT } as const;
    const next = await store.exchange({
      ...claim({ perDestination: 2 }),
      settle: [{ claim: done, outcome, policy: POLICY }],
      renew: [{ seq: on.seq, lockToken: on.lock_token ?? "", leaseS: 15 }],
    });
    expect([next.settled[0]?.result, next.renewed, next.taken.map((one) => one.seq)]).toEqual(["applied", [true], [3]]);
    expect(row(db, 1).status).toBe("delivered");
  });
});

describe("stale rows of living processes", () => {
  test("are asked for once a look, and taken a lease later", async () => {
    const { store, clock } = world();
    await store.enqueue([request(), request()]);
    await store.exchange(claim());
    clock.pass(15);
    const asked: string[] = [];
    const isAlive = (holder: string): boolean => asked.push(holder) > 0;
    expect((await store.exchange(claim({ isAlive }))).taken).toEqual([]);
    expect(asked).toEqual(["desk 1 1"]);
    clock.pass(15);
    expect((await store.exchange(claim({ isAlive }))).taken).toHaveLength(2);
  });

  test("are something that happens by itself, for a runner that says who lives", async () => {
    const { store, clock } = world();
    await store.enqueue([request(), request({ kind: "slow", deliver_to: "seat-2" })]);
    await store.exchange(claim({ kinds: new Map([["slow", 10]]) }));
    const patience = { fallbackLeaseS: 15, kinds: new Map([["slow", 10]]), isAlive: () => true };
    expect(await store.nextMoment({ patience })).toBe(T0 + 10);
    clock.pass(15);
    expect([await store.nextMoment(), await store.nextMoment({ patience })]).toEqual([null, T0 + 20]);
    clock.pass(5);
    expect(await store.nextMoment({ patience })).toBe(T0 + 30);
    expect(await store.nextMoment({ since: T0 + 15, patience })).toBe(T0 + 20);
    expect(await store.nextMoment({ patience: { ...patience, isAlive: () => false } })).toBeNull();
  });
});

test("nextMoment sees the row behind one that something keeps, the end of a hold and the expiry of what is held", async () => {
  const { store, clock } = world();
  await store.enqueue([
    request({ kind: "faulty" }),
    request({ not_before: T0 + 40 }),
    request({ deliver_to: "seat-2", expires_at: T0 + 30 }),
  ]);
  await store.hold({ deliverTo: "seat-2", kind: null, orderingKey: null }, { actor: "anna", forS: 20, note: null });
  expect(await store.nextMoment()).toBe(T0 + 20);
  clock.pass(20);
  expect(await store.nextMoment()).toBe(T0 + 30);
  clock.pass(10);
  expect(await store.nextMoment()).toBe(T0 + 40);
});

test("nextMoment counts from the moment that it is told, if that is not after now", async () => {
  const { store, clock } = world();
  await store.enqueue([request({ not_before: T0 + 10 }), request({ not_before: T0 + 20 })]);
  clock.pass(15);
  expect(await store.nextMoment()).toBe(T0 + 20);
  expect(await store.nextMoment({ since: T0 + 9 })).toBe(T0 + 10);
  expect(await store.nextMoment({ since: T0 + 10 })).toBe(T0 + 20);
  expect(await store.nextMoment({ since: T0 + 3_600 })).toBe(T0 + 20);
});

test("an exchange without any route claims nothing, but ends what has ended", async () => {
  const { store } = world();
  await store.enqueue([request(), request({ expires_at: T0 - 1 })]);
  const { taken } = await store.exchange(claim({ fallbackLeaseS: null, kinds: new Map([["ping", null]]) }));
  expect(taken).toMatchObject([{ seq: 2, status: "expired" }]);
});

test("an exchange that has lasted long claims one row and lets others come in between", async () => {
  const db = memory();
  let ms = 0;
  const slow = { ...handClock(), monotonicMs: () => (ms += 20) };
  const store = createStore(db, "memory", { clock: slow, entropy: countedEntropy() });
  await store.enqueue(Array.from({ length: 9 }, () => request()));
  expect((await store.exchange(claim())).taken.map((one) => one.seq)).toEqual([1, 2, 3]);
  slow.monotonicMs = () => (ms += 1_000);
  expect((await store.exchange(claim())).taken.map((one) => one.seq)).toEqual([4]);
});
