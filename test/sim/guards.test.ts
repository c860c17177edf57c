/** Order, limits and circuits with several runners, in virtual time: what a destination and a key get to see. */
import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { enter, T0 } from "../fixtures/world.ts";
import { type Act, type Command, type Mishap, POLICY, route, type World, world } from "./world.ts";

setDefaultTimeout(60_000);

function pass(of: World, seconds: number): Promise<void> {
  return of.clock.until(of.clock.sleep(seconds * 1_000));
}

/** How many commands of these ran at one time at most. */
function atOnce(commands: readonly Command[]): number {
  const live = (at: number): number =>
    commands.filter(({ startedS, endedS }) => startedS <= at && at < (endedS ?? Number.POSITIVE_INFINITY)).length;
  return Math.max(0, ...commands.map(({ startedS }) => live(startedS)));
}

const QUICK = { ...POLICY, backoff: { ...POLICY.backoff, baseMs: 1_000 } };
const OUTAGE_S = 60;

/** Everything to `seat-1` fails while its outage lasts. */
function outage(): World {
  const place: World = world({
    acts: (row): Act => ({
      outcome: row?.deliver_to === "seat-1" && place.clock.now() < T0 + OUTAGE_S ? "fail" : "ok",
      ms: 100,
    }),
  });
  return place;
}

test("an outage of a minute spends the failures that open the circuit and a probe a cooldown, and all is delivered afterwards", async () => {
  const place = outage();
  for (let at = 0; at < 200; at += 1) enter(place.db, { max_attempts: 5 }, T0);
  for (let at = 0; at < 40; at += 1) enter(place.db, { deliver_to: `other-${at % 4}` }, T0);
  const change = { circuit: { failures: 5, cooldownS: 10 }, fallback: route({ policy: QUICK }), concurrency: 8 };
  const runners = [place.runner("forever", change), place.runner("forever", change)];
  await pass(place, 5);
  // The others are unharmed meanwhile.
  expect(place.rows().filter(({ deliver_to, status }) => deliver_to !== "seat-1" && status !== "delivered")).toEqual([]);
  await pass(place, OUTAGE_S - 5);
  const failed = place.history().filter(({ reason_code }) => reason_code === "dispatch.pending.retry_backoff");
  expect(failed.length).toBeWithin(5, 5 + 4 - 1 + OUTAGE_S / 10 + 1);
  await pass(place, 60);
  expect(place.rows().filter(({ status }) => status !== "delivered")).toEqual([]);
  const told = runners.flatMap(({ events }) => events.map(({ kind }) => kind)).filter((kind) => kind.startsWith("circuit"));
  expect(told.toSorted()).toEqual(["circuit", "circuit over"]);
});

test("an open circuit has room for one probe over all runners, also after the one that probed was killed", async () => {
  const place = world({ acts: () => ({ outcome: "hang", ms: 0 }) });
  for (let at = 0; at < 50; at += 1) enter(place.db, {}, T0);
  place.db.run("UPDATE dispatch_destinations SET failures = 5, failed_at = ?, open_until = ?", [T0, T0 + 1]);
  const change = { circuit: { failures: 5, cooldownS: 10 } };
  const runners = Array.from({ length: 4 }, () => place.runner("forever", change));
  await pass(place, 3);
  expect(place.commands).toHaveLength(1);
  runners.find(({ name }) => name === place.commands[0]?.runner)?.kill();
  await pass(place, 11);
  expect(place.commands).toHaveLength(1);
  await pass(place, 4);
  expect(place.commands).toHaveLength(2);
});

test("a limit of 4 is never 5, whatever the batches and however many runners", async () => {
  const place = world({ acts: (row) => ({ outcome: "ok", ms: 40 + ((row?.seq ?? 0) % 7) * 30 }) });
  for (let at = 0; at < 120; at += 1) enter(place.db, { deliver_to: `seat-${at % 3}` }, T0);
  const runners = Array.from({ length: 4 }, () => place.runner("once", { concurrency: 10, perDestination: 4 }));
  await place.clock.until(Promise.all(runners.map(({ ran }) => ran)));
  expect(place.rows().every(({ status }) => status === "delivered")).toBeTrue();
  for (const seat of [0, 1, 2]) expect(atOnce(place.commands.filter(({ seq }) => (seq - 1) % 3 === seat))).toBe(4);
});

const KEYS = 5;
const mishap = fc.constantFrom<Mishap>("none", "none", "none", "none", "busy", "kill before", "kill after");
const shifts = fc.array(fc.record({ killedMs: fc.integer({ min: 0, max: 20_000 }), mishaps: fc.array(mishap, { maxLength: 6 }) }), {
  minLength: 2,
  maxLength: 4,
});

test("the rows of a key are delivered in their order, whichever runners die when", async () => {
  await fc.assert(
    fc.asyncProperty(shifts, fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 40, maxLength: 40 }), async (plan, failures) => {
      const place = world({ acts: () => ({ outcome: "ok", ms: 700 }) });
      for (const [at, times] of failures.entries()) {
        const { seq } = enter(place.db, { ordering_key: `key ${at % KEYS}`, deliver_to: `seat-${at % KEYS}`, max_attempts: 9 }, T0);
        place.script.set(
          seq,
          Array.from({ length: times }, () => ({ outcome: "fail", ms: 300 })),
        );
      }
      const change = { fallback: route({ policy: QUICK }), concurrency: 3 };
      for (const { killedMs, mishaps } of plan) {
        const runner = place.runner("forever", change);
        runner.mishaps.push(...mishaps);
        place.clock.at(killedMs, () => runner.kill());
      }
      await pass(place, 21);
      place.runner("forever", change);
      await pass(place, 900);
      inOrder(place);
    }),
    { numRuns: 40, seed: 20_261_129 },
  );
});

/** Deliveries of a key by `seq`; and no command of a later row begins while one of an earlier row is in time. */
function inOrder(place: World): void {
  const ids = new Map(place.rows().map((row) => [row.id, row]));
  expect([...ids.values()].filter(({ status }) => status !== "delivered")).toEqual([]);
  const delivered = place.history().filter(({ status }) => status === "delivered");
  for (let key = 0; key < KEYS; key += 1) {
    const own = delivered.flatMap(({ entity_id }) => {
      const row = ids.get(entity_id);
      return row?.ordering_key === `key ${key}` ? [row.seq] : [];
    });
    expect(own).toEqual(own.toSorted((one, other) => one - other));
    const commands = place.commands.filter(({ seq }) => (seq - 1) % KEYS === key);
    expect(atOnce(commands.filter(({ orphan }) => !orphan))).toBeLessThanOrEqual(1);
  }
}
