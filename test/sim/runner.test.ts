/** One situation each, in virtual time: what a runner does at its edges. */
import { describe, expect, test } from "bun:test";
import type { Event } from "../../src/dispatcher/report.ts";
import { enter, row, take } from "../fixtures/world.ts";
import { type Act, PLAN, POLICY, route, type Runner, type World, world } from "./world.ts";

const OK: Act = { outcome: "ok", ms: 50 };
const FAIL: Act = { outcome: "fail", ms: 50 };
const HANG: Act = { outcome: "hang", ms: 0 };
const AT_ONCE = { ...POLICY, backoff: { ...POLICY.backoff, baseMs: 0 } };

/** Enters messages; what their commands do is given, in order. */
function filled(...acts: readonly (readonly Act[])[]): World {
  const place = world();
  for (const [at, own] of acts.entries()) {
    enter(place.db, { kind: "plain", max_attempts: 3 }, place.clock.now());
    place.script.set(at + 1, [...own]);
  }
  return place;
}

async function drained(place: World, change?: Parameters<World["runner"]>[1]) {
  const runner = place.runner("once", change);
  return { runner, ...(await place.clock.until(runner.ran)) };
}

function pass(place: World, seconds: number): Promise<void> {
  return place.clock.until(place.clock.sleep(seconds * 1_000));
}

const kinds = ({ events }: Runner): Event["kind"][] => events.map(({ kind }) => kind);
const statuses = (place: World): string[] => place.rows().map(({ status }) => status);

/** What the database of a program may do: refuse to change this row. */
function refuse(place: World, seq: number): void {
  place.db.run(`CREATE TRIGGER refuses BEFORE UPDATE ON dispatch_outbox WHEN OLD.seq = ${seq} AND NEW.status <> 'delivering'
    BEGIN SELECT RAISE(ABORT, 'not this one'); END`);
}

describe("run --once", () => {
  test("sends what is due and answers with the counts", async () => {
    const { counters, trouble } = await drained(filled([OK], [FAIL], [OK], [{ outcome: "reject", ms: 1 }]));
    expect({ counters, trouble }).toEqual({
      counters: { attempted: 4, delivered: 2, dead_letter: 1, expired: 0, retried: 1 },
      trouble: null,
    });
  });
  test("leaves what becomes due after its start", async () => {
    const place = filled([{ outcome: "ok", ms: 5_000 }]);
    place.clock.at(1_000, () => enter(place.db, {}, place.clock.now()));
    expect((await drained(place)).counters).toMatchObject({ attempted: 1 });
    expect(statuses(place)).toEqual(["delivered", "pending"]);
  });
  test.each([
    ["fails", FAIL],
    ["fails within the millisecond", { outcome: "fail", ms: 0 }],
    ["asks for no wait", { outcome: "fail", ms: 0, retryAfterMs: 0 }],
  ] as const)("tries each row once although there is no backoff and it %s", async (_, act) => {
    const place = filled([act, act, act]);
    const { counters } = await drained(place, { fallback: route({ policy: AT_ONCE }) });
    expect(counters).toEqual({ attempted: 1, delivered: 0, dead_letter: 0, expired: 0, retried: 1 });
    expect(row(place.db, 1)).toMatchObject({ status: "pending", attempt: 1 });
  });
  test("tries each row once although the clock is set back", async () => {
    const place = filled([FAIL, FAIL, FAIL], [OK]);
    place.clock.at(20, () => place.clock.step(-3_600));
    const { counters } = await drained(place, { concurrency: 1, fallback: route({ policy: AT_ONCE }) });
    expect(counters).toMatchObject({ attempted: 1, retried: 1 });
  });
  test("tries each row once although the clock is set back by less than the rows have waited", async () => {
    const place = world();
    for (const seq of [1, 2, 3]) {
      enter(place.db, {}, place.clock.now() - 7_200);
      place.script.set(seq, [FAIL, FAIL, FAIL]);
    }
    place.clock.at(20, () => place.clock.step(-3_600));
    const { counters } = await drained(place, { concurrency: 1, fallback: route({ policy: AT_ONCE }) });
    expect(counters).toMatchObject({ attempted: 3, retried: 3 });
  });
  test("never runs more commands than it may", async () => {
    const place = filled(...Array.from({ length: 9 }, () => [OK]));
    await drained(place, { concurrency: 2 });
    const live = (at: number): number => place.commands.filter(({ startedS, endedS }) => startedS <= at && at < (endedS ?? 0)).length;
    expect(Math.max(...place.commands.map(({ startedS }) => live(startedS)))).toBe(2);
  });
});

describe("run", () => {
  test("makes each attempt when it is due and not when it looks next", async () => {
    const place = filled([FAIL, FAIL, OK]);
    const runner = place.runner("forever", {
      fallback: route({ policy: { ...POLICY, backoff: { baseMs: 700, maxMs: 9_000, jitter: 0 } } }),
    });
    await pass(place, 60);
    runner.stop();
    await place.clock.until(runner.ran);
    const starts = place.commands.map(({ startedS }) => startedS - (place.commands[0]?.startedS ?? 0));
    for (const [at, dueS] of [0, 0.05 + 1.4, 0.1 + 1.4 + 2.8].entries()) expect(starts[at]).toBeCloseTo(dueS, 2);
  });
  test.each([
    ["has nothing to do", []],
    ["has all hands full", [[HANG], [HANG], [HANG], [HANG], [OK], [OK]]],
    ["waits for a retry", [[FAIL]]],
  ] as const)("sleeps when it %s", async (_, acts) => {
    const place = filled(...acts);
    place.runner("forever");
    await pass(place, 5);
    const before = place.clock.wakes();
    await pass(place, 4);
    // A heartbeat a second, each with one turn of the event loop; and the one that waits here.
    expect(place.clock.wakes() - before).toBeLessThanOrEqual(4 * 2 + 1);
  });
  test("looks every interval at the latest, and when it is woken", async () => {
    const place = filled();
    const runner = place.runner("forever", {}, { deaf: true });
    await pass(place, 2);
    enter(place.db, {}, place.clock.now());
    await pass(place, 27);
    expect(statuses(place)).toEqual(["pending"]);
    await pass(place, 3);
    expect(statuses(place)).toEqual(["delivered"]);
    enter(place.db, {}, place.clock.now());
    runner.wake();
    await pass(place, 1);
    expect(statuses(place)).toEqual(["delivered", "delivered"]);
  });
  test("takes over what a killed runner left behind, once its lease is over", async () => {
    const place = filled([HANG, OK]);
    const first = place.runner("forever");
    await pass(place, 1);
    first.kill();
    place.runner("forever");
    await pass(place, 13);
    expect(row(place.db, 1)).toMatchObject({ status: "delivering", attempt: 1 });
    await pass(place, 2);
    expect(row(place.db, 1)).toMatchObject({ status: "delivered", attempt: 2 });
  });
});

// Its process still lives on this host, so others leave it one lease more: 30 s in all.
describe("what comes due while a pass goes on", () => {
  /** A world whose databases take 5 ms for each exchange. */
  function slow(change: Parameters<World["runner"]>[1] = {}): { place: World; start: () => Runner } {
    const place = world({ databases: 2 });
    const start = (): Runner => {
      const runner = place.runner("forever", change, { deaf: true });
      for (const mishaps of runner.troubles) mishaps.push(...Array.from({ length: 50 }, () => () => place.clock.pass(5)));
      return runner;
    };
    return { place, start };
  }
  /** Enters a row that the runner may claim so many milliseconds from now. */
  const enterDue = ({ db, clock }: World, ms = 0): void => void enter(db, { not_before: clock.now() + ms / 1_000 }, clock.now());

  // Whatever the moment is beside the 5 ms, the row is sent soon, not when the interval of 30 s is over.
  const EARLY = Array.from({ length: 13 }, (_, early) => early);
  const sentWithin = async (place: World, ms: number): Promise<void> => {
    await pass(place, ms / 1_000);
    expect(place.commands.some(({ seq, attempt }) => seq === 1 && attempt === 1)).toBeTrue();
    expect(statuses(place)[0]).toBe("delivered");
  };

  test.each(EARLY)("is claimed by the next: a row, %i ms after it began", async (early) => {
    const { place, start } = slow();
    enterDue(place, early);
    start();
    await sentWithin(place, 500);
  });
  test.each(EARLY)("is done by the next: to ask a database again that was locked, %i ms after it began", async (early) => {
    const { place, start } = slow();
    enterDue(place);
    const runner = start();
    runner.mishaps.unshift("busy");
    place.clock.at(105 - early, () => runner.wake());
    await sentWithin(place, 500);
  });
  test.each(EARLY)("is done by the next: to start commands again on a machine that had no room, %i ms after it began", async (early) => {
    const { place, start } = slow({ intervalMs: 6_000 });
    enterDue(place);
    enterDue(place);
    place.script.set(1, [{ outcome: "exhausted", ms: 0 }, OK]);
    place.script.set(2, [{ outcome: "ok", ms: 6_004 - early }]);
    start();
    await sentWithin(place, 6_500);
  });
  test.each(EARLY)("is done by the next: to try a route again that was at fault, %i ms after it began", async (early) => {
    const { place, start } = slow({ routes: new Map([["other", route()]]), fallback: route({ policy: AT_ONCE }) });
    enterDue(place);
    enter(place.db, { kind: "other" }, place.clock.now());
    place.script.set(1, [{ outcome: "fault", ms: 0 }, OK]);
    place.script.set(2, [{ outcome: "ok", ms: 1_000 - early }]);
    start();
    await sentWithin(place, 1_500);
  });
});

describe("a runner that was frozen until its lease was over, and one lease more", () => {
  test("changes nothing, and what it came to is not counted", async () => {
    const place = filled([FAIL, { outcome: "ok", ms: 9_000 }]);
    const frozen = place.runner("once");
    await pass(place, 0.01);
    frozen.freeze(35_000);
    await pass(place, 31);
    place.runner("forever");
    await pass(place, 1);
    expect(row(place.db, 1)).toMatchObject({ status: "delivering", attempt: 2 });
    expect(await place.clock.until(frozen.ran)).toMatchObject({ trouble: null, counters: { attempted: 1, retried: 0 } });
    expect(row(place.db, 1)).toMatchObject({ status: "delivering", attempt: 2 });
    await pass(place, 9);
    expect(row(place.db, 1)).toMatchObject({ status: "delivered", attempt: 2 });
  });
  test("starts nothing that it claimed before and another runner has taken over", async () => {
    const place = filled([{ outcome: "ok", ms: 9_000 }]);
    const frozen = place.runner("once");
    frozen.freeze(35_000); // its first claim is made, and is on its way back from the database
    await pass(place, 31);
    const other = place.runner("forever");
    expect(await place.clock.until(frozen.ran)).toMatchObject({ counters: { delivered: 0 } });
    await pass(place, 10);
    expect(place.commands.map(({ runner }) => runner)).toEqual([other.name]);
    expect(row(place.db, 1)).toMatchObject({ status: "delivered", attempt: 2 });
  });
  test("starts what it claimed before and nobody took over, with a lease that is new", async () => {
    const place = filled([OK]);
    const frozen = place.runner("once");
    frozen.freeze(20_000);
    expect(await place.clock.until(frozen.ran)).toMatchObject({ trouble: null, counters: { attempted: 1, delivered: 1 } });
    expect(place.commands).toHaveLength(1);
  });
});

test("a command does not start whose claim was taken over while it was renewed, because the clock was set meanwhile", async () => {
  const place = filled([OK]);
  const runner = place.runner("once");
  let other: string | null = null;
  runner.mishaps.push(
    () => place.clock.pass(1_500), // the claim took long, so it is renewed before the command starts
    () => {
      place.clock.step(3_600);
      other = take(place.db, place.clock.now())?.lock_token ?? null;
    },
  );
  await place.clock.until(runner.ran);
  expect(place.commands).toEqual([]);
  expect(other).toBeString();
  expect(row(place.db, 1)).toMatchObject({ status: "delivering", attempt: 2, lock_token: other });
});

describe("a stopped runner", () => {
  test("lets commands finish within the grace, claims nothing more and ends in order", async () => {
    const place = filled([{ outcome: "ok", ms: 8_000 }], [OK], [OK]);
    const runner = place.runner("forever", { concurrency: 1 });
    await pass(place, 1);
    runner.stop();
    expect((await place.clock.until(runner.ran)).trouble).toBeNull();
    expect(statuses(place)).toEqual(["delivered", "pending", "pending"]);
  });
  test("ends what runs after the grace and settles it as a failed attempt", async () => {
    const place = filled([HANG], [HANG]);
    const runner = place.runner("forever", { shutdownGraceMs: 3_000 });
    await pass(place, 1);
    runner.stop();
    const wakes = place.clock.wakes();
    expect((await place.clock.until(runner.ran)).trouble).toBeNull();
    expect(place.clock.monotonicMs()).toBe(1_000 + 3_000 + 2_000);
    expect(place.clock.wakes() - wakes).toBeLessThan(20);
    for (const seq of [1, 2])
      expect(row(place.db, seq)).toMatchObject({ status: "pending", attempt: 1, last_error: "stopped by the runner" });
  });
  test("ends it at once at the second signal, and still settles it", async () => {
    const place = filled([HANG]);
    const runner = place.runner("forever");
    await pass(place, 1);
    runner.stop();
    await pass(place, 1);
    runner.now();
    await place.clock.until(runner.ran);
    expect(place.clock.monotonicMs()).toBeLessThan(2_100);
    expect(row(place.db, 1)).toMatchObject({ status: "pending", attempt: 1, last_error: "stopped by the runner" });
  });
  test("a second signal after the grace waits for nothing more", async () => {
    const place = filled([HANG]);
    const runner = place.runner("forever", { shutdownGraceMs: 3_000 });
    await pass(place, 1);
    runner.stop();
    await pass(place, 4);
    expect(row(place.db, 1)?.status).toBe("delivering");
    runner.now();
    await place.clock.until(runner.ran);
    expect(place.clock.monotonicMs()).toBeLessThan(5_100);
    expect(row(place.db, 1)).toMatchObject({ status: "pending", attempt: 1, last_error: "stopped by the runner" });
  });
  test.each(["once", "forever"] as const)("(%s) gives a claim back whose command has not started", async (mode) => {
    const place = filled([OK], [OK]);
    const runner = place.runner(mode, { concurrency: 1 });
    runner.stop(); // its first claim is made, and is on its way back from the database
    expect((await place.clock.until(runner.ran)).trouble).toBeNull();
    expect(
      place
        .history()
        .map(({ reason_code }) => reason_code)
        .slice(2),
    ).toEqual(["dispatch.delivering.attempt", "dispatch.pending.released"]);
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["pending", 0],
      ["pending", 0],
    ]);
    expect(place.commands).toEqual([]);
  });
  test("tries for 5 s to write what it has, and says what it could not", async () => {
    const place = filled([{ outcome: "ok", ms: 2_000 }]);
    const runner = place.runner("forever");
    await pass(place, 1);
    runner.mishaps.push(...Array<"io">(500).fill("io"));
    runner.stop();
    const { trouble } = await place.clock.until(runner.ran);
    expect(trouble?.kind).toBe("io");
    expect(place.clock.monotonicMs()).toBeWithin(7_000, 8_200);
    expect(kinds(runner)).toEqual(["trouble", "unwritten"]);
  });
});

describe("trouble with the database", () => {
  test.each(["busy", "io"] as const)("(%s) is waited out, and the outcome is written afterwards", async (mishap) => {
    for (const mode of ["once", "forever"] as const) {
      const place = filled([OK]);
      const runner = place.runner(mode);
      runner.mishaps.push("none", ...Array<typeof mishap>(20).fill(mishap));
      await pass(place, 40);
      runner.stop();
      expect((await place.clock.until(runner.ran)).trouble).toBeNull();
      expect(row(place.db, 1)).toMatchObject({ status: "delivered", attempt: 1 });
      expect(place.commands).toHaveLength(1);
      expect(kinds(runner)).toEqual(["trouble", "settled", "trouble over"].toSorted((a) => (a === "trouble" ? -1 : 0)) as Event["kind"][]);
    }
  });
  test("starts nothing while an outcome waits to be written", async () => {
    const place = filled([OK], [OK]);
    const runner = place.runner("forever", { concurrency: 1 });
    runner.mishaps.push("none", ...Array<"busy">(9).fill("busy"));
    await pass(place, 30);
    const [first, second] = place.commands;
    expect((second?.startedS ?? 0) - (first?.endedS ?? 0)).toBeGreaterThan(1);
  });
  test("ends a drain with its code when nothing is in hand", async () => {
    const io = filled([OK]);
    const broken = io.runner("once");
    broken.mishaps.push(...Array<"io">(9).fill("io"));
    expect((await io.clock.until(broken.ran)).trouble?.kind).toBe("io");
    const busy = filled([OK]);
    const locked = busy.runner("once");
    locked.mishaps.push(...Array<"busy">(900).fill("busy"));
    expect((await busy.clock.until(locked.ran)).trouble?.kind).toBe("busy");
    expect(busy.clock.monotonicMs()).toBeWithin(30_000, 32_000);
  });
  test("is told once and does not spin", async () => {
    const place = filled([OK]);
    const runner = place.runner("forever");
    runner.mishaps.push(...Array<"io">(900).fill("io"));
    await pass(place, 600);
    expect(kinds(runner)).toEqual(["trouble"]);
    expect(900 - runner.mishaps.length).toBeWithin(20, 32);
    expect(place.clock.wakes()).toBeLessThan(600 * 2 + 100);
  });
});

describe("an outcome that the database refuses", () => {
  test("keeps no other from being written", async () => {
    const place = filled([OK], [OK], [OK], [OK], [OK]);
    refuse(place, 2);
    const { runner, trouble } = await drained(place, { concurrency: 3 });
    expect(statuses(place)).toEqual(["delivered", "delivering", "delivered", "delivered", "delivered"]);
    expect(trouble?.message).toContain("not this one");
    expect(kinds(runner).filter((kind) => kind !== "settled")).toEqual(["stuck", "unwritten"]);
  });
  test("is kept and written as soon as it may be, and its slot stays taken", async () => {
    const place = filled([OK], [OK], [OK]);
    refuse(place, 1);
    const runner = place.runner("forever", { concurrency: 1 });
    await pass(place, 100);
    expect(statuses(place)).toEqual(["delivering", "pending", "pending"]);
    expect(place.clock.wakes()).toBeLessThan(100 * 2 + 60);
    place.db.run("DROP TRIGGER refuses");
    await pass(place, 100);
    expect(statuses(place)).toEqual(["delivered", "delivered", "delivered"]);
    expect(row(place.db, 1).attempt).toBe(1);
    expect(kinds(runner).filter((kind) => kind !== "settled")).toEqual(["stuck"]);
  });
  test("is told by a runner that is stopped", async () => {
    const place = filled([OK]);
    refuse(place, 1);
    const runner = place.runner("forever");
    await pass(place, 10);
    runner.stop();
    expect((await place.clock.until(runner.ran)).trouble?.message).toContain("not this one");
    expect(kinds(runner).at(-1)).toBe("unwritten");
  });
  test("is no longer one when the deadline was moved by hand while its command ran", async () => {
    const place = filled([FAIL]);
    place.clock.at(20, () => place.db.run("UPDATE dispatch_outbox SET expires_at = $at", [place.clock.now() + 1]));
    expect((await drained(place)).trouble).toBeNull();
    const { status, next_attempt_at, expires_at } = row(place.db, 1);
    expect({ status, due: next_attempt_at }).toEqual({ status: "pending", due: expires_at ?? 0 });
  });
});

describe("a fault", () => {
  const broken = { routes: new Map([["other", route({ fault: () => "no such command" })]]) };
  test("that can be looked up costs nothing and stops no other route", async () => {
    const place = filled([OK]);
    enter(place.db, { kind: "other" }, place.clock.now());
    enter(place.db, { kind: "other", expires_at: place.clock.now() + 0.001 }, place.clock.now());
    await pass(place, 1);
    const { runner, counters, trouble } = await drained(place, broken);
    expect(statuses(place)).toEqual(["delivered", "pending", "expired"]);
    expect(counters).toEqual({ attempted: 2, delivered: 1, dead_letter: 0, expired: 1, retried: 0 });
    expect(row(place.db, 2).attempt).toBe(0);
    expect(trouble).toMatchObject({ kind: "settings", message: 'route "other": no such command' });
    expect(kinds(runner).filter((kind) => kind !== "fault")).toEqual(["ended", "settled"]);
    expect(kinds(runner).filter((kind) => kind === "fault")).toHaveLength(1);
  });
  test("keeps no row from dying that has used all its sends", async () => {
    const place = world();
    enter(place.db, { max_attempts: 1, ack_required: true }, place.clock.now());
    await drained(place);
    await pass(place, 61);
    const { counters } = await drained(place, { fallback: route({ fault: () => "no such command" }) });
    expect(counters).toEqual({ attempted: 1, delivered: 0, dead_letter: 1, expired: 0, retried: 0 });
    expect(row(place.db, 1)).toMatchObject({ status: "dead_letter", reason_code: "dispatch.dead_letter.ack_timeout" });
  });
  test("that shows only at the start gives the attempt back and stops its route for a backoff, told once while it lasts", async () => {
    const fault: Act = { outcome: "fault", ms: 0 };
    const place = filled([fault, fault, fault, OK], [fault, fault, fault, OK]);
    const runner = place.runner("forever");
    await pass(place, 1);
    for (const seq of [1, 2])
      expect(row(place.db, seq)).toMatchObject({ status: "pending", attempt: 0, next_attempt_at: expect.any(Number) });
    const third = enter(place.db, {}, place.clock.now());
    place.script.set(third.seq, [fault, fault, OK]);
    await pass(place, 20);
    expect(place.history().filter(({ entity_id }) => entity_id === third.id)).toHaveLength(1);
    await pass(place, 110);
    expect(statuses(place)).toEqual(["delivered", "delivered", "delivered"]);
    expect(kinds(runner).filter((kind) => kind === "fault" || kind === "fault over")).toEqual(["fault", "fault over"]);
    expect(place.history().filter(({ reason_code }) => reason_code === "dispatch.pending.config_fault")).toHaveLength(3 + 3 + 2);
  });
  test("is a failed attempt where that is what the settings say", async () => {
    const policy = { ...POLICY, onConfigError: "fail" as const };
    const place = filled([]);
    const { runner, counters, trouble } = await drained(place, {
      fallback: route({ policy, fault: () => "no dispatch.notify_template configured" }),
    });
    expect(trouble).toBeNull();
    expect(counters).toMatchObject({ attempted: 1, retried: 1 });
    expect(row(place.db, 1)).toMatchObject({ attempt: 1, last_error: "no dispatch.notify_template configured" });
    expect(kinds(runner)).toEqual(["settled"]);
  });
});

describe("a kind without a route", () => {
  const plan = { ...PLAN, fallback: null, routes: new Map([["known", route()]]) };
  test("is retried once and then dies", async () => {
    const place = filled([]);
    const { trouble, counters } = await drained(place, plan);
    expect({ trouble, retried: counters.retried }).toEqual({ trouble: null, retried: 1 });
    expect(row(place.db, 1)).toMatchObject({ status: "pending", attempt: 1, unresolved: 1 });
    await pass(place, 61);
    await drained(place, plan);
    expect(row(place.db, 1)).toMatchObject({ status: "dead_letter", reason_code: "dispatch.dead_letter.unresolvable", attempt: 2 });
  });
  test("dies at once when it has one attempt", async () => {
    const place = world();
    enter(place.db, { max_attempts: 1 }, place.clock.now());
    await drained(place, plan);
    expect(row(place.db, 1)).toMatchObject({ status: "dead_letter", reason_code: "dispatch.dead_letter.unresolvable" });
  });
});

describe("a machine out of resources", () => {
  const none: Act = { outcome: "exhausted", ms: 0 };
  test("costs nothing, is told once and left alone for an interval", async () => {
    const place = filled([none, none, OK], [none, none, OK]);
    const runner = place.runner("forever");
    await pass(place, 29);
    expect(place.rows().map(({ attempt }) => attempt)).toEqual([0, 0]);
    expect(place.history().filter(({ reason_code }) => reason_code === "dispatch.pending.released")).toHaveLength(2);
    await pass(place, 120);
    expect(statuses(place)).toEqual(["delivered", "delivered"]);
    expect(kinds(runner).filter((kind) => kind === "exhausted")).toHaveLength(1);
  });
  test("ends a drain with busy", async () => {
    const place = filled([none]);
    expect((await drained(place)).trouble?.kind).toBe("busy");
    expect(row(place.db, 1)).toMatchObject({ status: "pending", attempt: 0 });
  });
});

describe("a database that turns newer", () => {
  const newer = (place: World): void => void place.db.run("UPDATE dispatch_schema SET version = version + 1");
  test("is not claimed from any more; what runs is settled, and the code asks for a new start", async () => {
    for (const mode of ["once", "forever"] as const) {
      const place = filled([{ outcome: "ok", ms: 5_000 }], [OK]);
      const runner = place.runner(mode, { concurrency: 1 });
      place.clock.at(1_000, () => newer(place));
      expect((await place.clock.until(runner.ran)).trouble?.kind).toBe("busy");
      expect(statuses(place)).toEqual(["delivered", "pending"]);
    }
  });
});
