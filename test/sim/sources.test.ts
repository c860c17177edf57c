/** Several databases behind one runner, in virtual time: slots, trouble, stopping, sweeping, and what is told how often. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { OutboxError } from "../../src/core/errors.ts";
import { enter, T0 } from "../fixtures/world.ts";
import { type Act, route, type Runner, type World, world } from "./world.ts";

function pass(of: World, seconds: number): Promise<void> {
  return of.clock.until(of.clock.sleep(seconds * 1_000));
}

function fill(db: Database | undefined, count: number): void {
  if (db !== undefined) for (let at = 0; at < count; at += 1) enter(db, { deliver_to: `seat-${at % 9}` }, T0);
}

/** Messages in each database, by count. */
function filled(counts: readonly number[], acts?: (source: number) => Act): World {
  const place = world({
    databases: counts.length,
    ...(acts === undefined ? {} : { acts: (row) => acts(Math.floor((row?.seq ?? 0) / 1_000)) }),
  });
  for (const [at, count] of counts.entries()) fill(place.databases[at], count);
  return place;
}

const kinds = ({ events }: Runner): string[] => events.map(({ kind }) => kind).filter((kind) => kind !== "settled");
const sourceOf = (seq: number): number => Math.floor(seq / 1_000);

describe("slots", () => {
  test("are one pool over all sources, and everything is drained", async () => {
    const place = filled([30, 30, 30]);
    const runner = place.runner("once", { concurrency: 4 });
    const { counters, trouble } = await place.clock.until(runner.ran);
    expect({ counters, trouble }).toMatchObject({ counters: { attempted: 90, delivered: 90 }, trouble: null });
    const live = (at: number): number => place.commands.filter(({ startedS, endedS }) => startedS <= at && at < (endedS ?? 0)).length;
    expect(Math.max(...place.commands.map(({ startedS }) => live(startedS)))).toBe(4);
  });
  test.each([1, 2, 3])("(%d) a source with a long backlog leaves the next one its share", async (concurrency) => {
    const place = filled([300, 10], (source) => ({ outcome: "ok", ms: source === 0 ? 1_000 : 50 }));
    place.runner("forever", { concurrency });
    await pass(place, 22);
    // With one slot: every second command is the other's.
    expect(place.commands.filter(({ seq }) => sourceOf(seq) === 1)).toHaveLength(10);
  });
  test("of a source whose outcomes are refused are not taken from the others", async () => {
    const place = filled([8, 8]);
    place.db.run(`CREATE TRIGGER refuses BEFORE UPDATE ON dispatch_outbox WHEN NEW.status = 'delivered'
      BEGIN SELECT RAISE(ABORT, 'not this one'); END`);
    const runner = place.runner("once", { concurrency: 2 });
    const { trouble } = await place.clock.until(runner.ran);
    expect(trouble?.message).toContain("not this one");
    expect(place.rows().filter(({ seq, status }) => sourceOf(seq) === 1 && status === "delivered")).toHaveLength(8);
    expect(place.commands.filter(({ seq }) => sourceOf(seq) === 0)).toHaveLength(2);
  });
  test("of a source that is locked with its outcomes unwritten go to the others", async () => {
    const place = filled([4, 20]);
    const runner = place.runner("forever", { concurrency: 4 });
    runner.troubles[0]?.push("none", "none", ...Array<"busy">(60).fill("busy"));
    await pass(place, 30);
    expect(place.rows().filter(({ seq, status }) => sourceOf(seq) === 1 && status === "delivered")).toHaveLength(20);
    await pass(place, 60);
    expect(place.rows().filter(({ status }) => status !== "delivered")).toEqual([]);
    expect(place.commands).toHaveLength(24);
  });
});

describe("a source in trouble", () => {
  test("is told once, skipped, and the code of a drain that worked the others through", async () => {
    const place = filled([3, 3, 3]);
    const runner = place.runner("once");
    runner.troubles[1]?.push(...Array<"io">(99).fill("io"));
    const { counters, trouble } = await place.clock.until(runner.ran);
    expect({ counters, kind: trouble?.kind }).toMatchObject({ counters: { delivered: 6 }, kind: "io" });
    expect(kinds(runner)).toEqual(["trouble"]);
  });
  test("that answers again before the drain is over is no trouble", async () => {
    const place = filled([1, 1], (source) => ({ outcome: "ok", ms: source === 0 ? 9_000 : 50 }));
    const runner = place.runner("once");
    runner.troubles[1]?.push("io", "io");
    const { counters, trouble } = await place.clock.until(runner.ran);
    expect({ counters, trouble }).toMatchObject({ counters: { delivered: 2 }, trouble: null });
    expect(kinds(runner)).toEqual(["trouble", "trouble over"]);
  });
  test("is told once over all runners, again after an hour, and its end once", async () => {
    const place = filled([0, 0]);
    const once = async (...mishaps: "io"[]): Promise<string[]> => {
      const runner = place.runner("once");
      runner.troubles[1]?.push(...mishaps);
      await place.clock.until(runner.ran);
      return kinds(runner);
    };
    expect([await once("io"), await once("io"), await once("io")]).toEqual([["trouble"], [], []]);
    await pass(place, 3_601);
    expect(await once("io")).toEqual(["trouble"]);
    expect([await once(), await once()]).toEqual([["trouble over"], []]);
  });
  test("is told each hour by a runner that goes on, and not when another one has", async () => {
    const place = filled([0, 0]);
    const runners = [place.runner("forever"), place.runner("forever")];
    for (const { troubles } of runners) troubles[1]?.push(...Array<"io">(3_000).fill("io"));
    await pass(place, 3 * 3_600 + 300);
    expect(runners.flatMap(kinds)).toEqual(["trouble", "trouble", "trouble", "trouble"]);
  });
});

describe("a stopped runner", () => {
  test("settles what runs in every source and claims nothing more", async () => {
    const place = filled([9, 9], () => ({ outcome: "ok", ms: 5_000 }));
    const runner = place.runner("forever", { concurrency: 6 });
    await pass(place, 1);
    runner.stop();
    expect((await place.clock.until(runner.ran)).trouble).toBeNull();
    expect(place.rows().filter(({ status }) => status === "delivering")).toEqual([]);
    expect(place.rows().filter(({ status }) => status === "delivered")).toHaveLength(6);
    expect(place.commands).toHaveLength(6);
  });
  test("gives up a source that takes no outcomes after 5 s, and has settled the others", async () => {
    const place = filled([2, 2], () => ({ outcome: "ok", ms: 2_000 }));
    const runner = place.runner("forever");
    await pass(place, 1);
    runner.troubles[0]?.push(...Array<"io">(500).fill("io"));
    runner.stop();
    expect((await place.clock.until(runner.ran)).trouble?.kind).toBe("io");
    expect(place.clock.monotonicMs()).toBeWithin(7_000, 8_300);
    expect(kinds(runner)).toEqual(["trouble", "unwritten", "unwritten"]);
    expect(place.rows().map(({ status }) => status)).toEqual(["delivering", "delivering", "delivered", "delivered"]);
  });
});

describe("a fault that shows only at the start", () => {
  test("is told once over all runners, and its end when a command starts", async () => {
    const place = filled([1]);
    const fault: Act = { outcome: "fault", ms: 0 };
    place.script.set(1, [fault, fault, fault]);
    const told: string[][] = [];
    for (let run = 0; run < 5; run += 1) {
      const runner = place.runner("once");
      const { trouble } = await place.clock.until(runner.ran);
      expect(trouble?.kind).toBe(run < 3 ? "settings" : undefined);
      told.push(kinds(runner));
      await pass(place, 31);
    }
    expect(told).toEqual([["fault"], [], [], ["fault over"], []]);
  });
  test("is over with its route", async () => {
    const place = filled([1]);
    place.script.set(
      1,
      Array.from({ length: 9 }, (): Act => ({ outcome: "fault", ms: 0 })),
    );
    const change: { routes?: Map<string, ReturnType<typeof route>> } = { routes: new Map([["ping", route()]]) };
    const runner = place.runner("forever", change);
    await pass(place, 2);
    delete change.routes;
    place.script.set(1, []);
    runner.wake();
    await pass(place, 60);
    expect(kinds(runner)).toEqual(["fault", "fault over"]);
  });
});

describe("retention", () => {
  const change = { retention: { deliveredS: 86_400, deadLetterS: 86_400, inboxS: 0 } };
  const ended = (place: World, days: number): void => {
    for (const db of place.databases)
      db.run(`UPDATE dispatch_outbox SET status = 'dead_letter', reason_code = 'dispatch.dead_letter.max_attempts',
        updated_at = ${T0 - days * 86_400} WHERE status = 'pending'`);
  };
  test("sweeps every source at the end of a drain, and says once how many dead letters went", async () => {
    const place = filled([700, 3]);
    ended(place, 2);
    fill(place.db, 1);
    const runner = place.runner("once", change);
    expect((await place.clock.until(runner.ran)).counters).toMatchObject({ attempted: 1, delivered: 1 });
    expect(place.rows().map(({ status }) => status)).toEqual(["delivered"]);
    expect(runner.events.filter(({ kind }) => kind === "swept")).toEqual([
      { kind: "swept", source: "source 2", deadLetters: 3 },
      { kind: "swept", source: "default", deadLetters: 700 },
    ]);
    for (const db of place.databases) expect(db.query("SELECT action FROM admin_events").all()).toEqual([{ action: "dispatch.sweep" }]);
  });
  test("keeps no claim waiting: what comes in the middle of a sweep is sent before the next batch", async () => {
    let left = 0;
    const place: World = filled([1_500], () => {
      left = place.rows().length;
      return { outcome: "ok", ms: 50 };
    });
    ended(place, 2);
    place.clock.at(0, () => fill(place.db, 1));
    place.runner("forever", change);
    await pass(place, 2);
    expect(left).toBeWithin(300, 1_501);
    expect(place.rows().map(({ status }) => status)).toEqual(["delivered"]);
  });
});

test("a source that turned newer stops every claim, and the code asks for a new start", async () => {
  const place = filled([3, 3], () => ({ outcome: "ok", ms: 4_000 }));
  const runner = place.runner("forever", { concurrency: 8 });
  await pass(place, 1);
  place.databases[1]?.run("UPDATE dispatch_schema SET version = version + 1");
  await pass(place, 2);
  fill(place.db, 1);
  const { trouble } = await place.clock.until(runner.ran);
  expect(trouble).toBeInstanceOf(OutboxError);
  expect(trouble?.kind).toBe("busy");
  expect(place.commands).toHaveLength(6);
  expect(place.rows().map(({ status }) => status)).toEqual([1, 1, 1, 0, 1, 1, 1].map((done) => (done === 1 ? "delivered" : "pending")));
  expect(kinds(runner)).toEqual(["trouble"]);
});
