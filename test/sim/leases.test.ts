/** Leases, in virtual time: renewed while a command runs, at once when the clock was set, and never for a claim that is lost. */
import { expect, test } from "bun:test";
import { enter, row, T0 } from "../fixtures/world.ts";
import { type Act, type Mishap, POLICY, route, type World, world } from "./world.ts";

const SLOW: Act = { outcome: "ok", ms: 9_900 };
const STUCK: Act = { outcome: "stuck", ms: 0 };

/** One message whose first command does this, and a second runner that would take it. */
function place(act: Act): World {
  const made = world();
  enter(made.db, {}, made.clock.now());
  made.script.set(1, [act]);
  return made;
}

function pass(of: World, seconds: number): Promise<void> {
  return of.clock.until(of.clock.sleep(seconds * 1_000));
}

const leaseEndS = (of: World): number => row(of.db, 1).next_attempt_at - T0;

test("a lease is renewed every third of it, until the command's own time is over", async () => {
  const one = place(STUCK);
  one.runner("forever");
  const ends: number[] = [];
  for (let second = 0; second < 30; second += 1) {
    await pass(one, 1);
    ends.push(leaseEndS(one));
  }
  // Timeout 10 s: a lease of 15 s, renewed at 5 and at 10 s; at 15 s there is nothing left to wait for.
  expect([...new Set(ends)]).toEqual([15, 20, 25]);
});

test("a command that cannot be ended is sent again by another runner, a lease after its lease because the first one lives", async () => {
  for (const [dies, afterS] of [
    [false, 25 + 15],
    [true, 25],
  ] as const) {
    const one = place(STUCK);
    const first = one.runner("forever");
    await pass(one, 12);
    one.runner("forever");
    if (dies) first.kill();
    await pass(one, 40);
    expect(one.commands.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect((one.commands[1]?.startedS ?? 0) - T0).toBeWithin(afterS, afterS + 1);
  }
});

test("runners that wait for a stale row of a living holder do not wake each other", async () => {
  const one = place(STUCK);
  one.runner("forever");
  one.runner("forever");
  await pass(one, 26);
  const written = (): unknown => one.db.query("SELECT total_changes() AS n").get();
  const before = written();
  await pass(one, 10);
  // Whatever one writes wakes the other.
  expect(written()).toEqual(before);
});

test.each([14, -3_600, 86_400])("a clock that is set by %d s costs no running command its lease", async (seconds) => {
  const one = place(SLOW);
  one.runner("forever");
  one.clock.at(500, () => one.runner("forever"));
  one.clock.at(2_000, () => one.clock.step(seconds));
  await pass(one, 3.1);
  expect(row(one.db, 1).next_attempt_at - one.clock.now()).toBeWithin(13, 15);
  await pass(one, 7);
  expect(one.commands).toHaveLength(1);
  expect(row(one.db, 1)).toMatchObject({ status: "delivered", attempt: 1 });
});

test("a renewal that a clock step asked for and a lock refused is tried again", async () => {
  const one = place(SLOW);
  const runner = one.runner("forever");
  await pass(one, 1.5);
  runner.mishaps.push("busy", "busy");
  one.clock.step(30);
  await pass(one, 2.5);
  expect(row(one.db, 1).next_attempt_at).toBeGreaterThan(one.clock.now());
});

/** What happens between the commit of a claim and the runner's learning of it. */
async function between(mishaps: readonly Mishap[], of: World): Promise<void> {
  const runner = of.runner("forever");
  runner.mishaps.push(...mishaps);
  await pass(of, 5);
}

test("a claim that is older than 1 s is renewed before its command starts", async () => {
  const one = place({ outcome: "ok", ms: 3_000 });
  await between([() => one.clock.step(10)], one);
  expect(one.commands).toHaveLength(1);
  // From the command's start on, 10 s after the claim.
  expect(one.history().map(({ status }) => status)).toEqual(["pending", "delivering", "delivered"]);
  const late = place(STUCK);
  await between([() => late.clock.step(10)], late);
  expect(leaseEndS(late)).toBeGreaterThanOrEqual(25);
});

test("a claim that somebody else has taken meanwhile is not started", async () => {
  const one = place(SLOW);
  const stolen = (): void => {
    one.clock.step(60);
    one.db.run(
      `UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 2, lock_token = 'theirs',
       holder = 'elsewhere 1 1', next_attempt_at = ${one.clock.now() + 60}, updated_at = ${one.clock.now()} WHERE seq = 1`,
    );
  };
  await between([stolen], one);
  expect(one.commands).toEqual([]);
  expect(row(one.db, 1)).toMatchObject({ status: "delivering", attempt: 2, lock_token: "theirs" });
});

test("a claim that cannot be renewed before its start is given back and costs nothing", async () => {
  const one = place({ outcome: "ok", ms: 50 });
  const runner = one.runner("forever", { fallback: route({ policy: POLICY }) });
  runner.mishaps.push(() => one.clock.step(10), "busy");
  await pass(one, 5);
  expect(one.history().map(({ reason_code }) => reason_code.replace(/^dispatch\./, ""))).toEqual([
    "pending.enqueued",
    "delivering.attempt",
    "pending.released",
    "delivering.attempt",
    "delivered.transport_ok",
  ]);
  expect(row(one.db, 1).attempt).toBe(1);
});
