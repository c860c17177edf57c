/** Several runners of the built program at once, some of them killed: what the history and the commands say afterwards. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { hostClock } from "../../src/host.ts";
import { sh, until, Workstation } from "../cli/running.ts";
import { check, executions } from "./invariants.ts";

setDefaultTimeout(60_000);

/** Notes its start and its end. `$3` is how long it takes. */
const RECORD = 'echo "start $1 $2 $$" >> "$HOME/log"; sleep "$3"; echo "end $1 $2 $$" >> "$HOME/log"; exit 0';

function recording(seconds: number, settings: Readonly<Record<string, unknown>> = {}): Workstation {
  const place = new Workstation();
  const notify_template = [...sh(RECORD), String(seconds), place.home];
  return place.settings({ dispatch: { notify_template, timeout: "10s", backoff: { base: 0 }, ...settings } });
}

const many = (count: number): readonly Record<string, never>[] => Array.from({ length: count }, () => ({}));

test.concurrent("four runners share 500 messages: each is sent once, and none twice at a time", async () => {
  using place = new Workstation().settings({
    dispatch: { notify_template: sh('echo "start $1 $2 $$" >> "$HOME/log"; echo "end $1 $2 $$" >> "$HOME/log"'), concurrency: 4 },
  });
  await place.enqueue(...many(500));
  const counts = await Promise.all(Array.from({ length: 4 }, () => place.drain()));
  expect(counts.reduce((sum, { delivered = 0 }) => sum + delivered, 0)).toBe(500);
  check(place);
  expect(place.rows().every(({ status, attempt }) => status === "delivered" && attempt === 1)).toBeTrue();
  expect(executions(place)).toHaveLength(500);
});

test.concurrent(
  "runners that are killed at any moment lose nothing, and what they began is sent again at most max_attempts times",
  async () => {
    using place = recording(0.02, { concurrency: 3 });
    const random = numbers(20_261_129);
    await place.enqueue(...many(60).map(() => ({ max_attempts: 4 })));
    for (let round = 0; round < 12; round += 1) {
      const runner = place.background("run", "--once");
      await hostClock.sleep(30 + random() * 170); // any moment will do
      runner.kill("SIGKILL");
      await runner.exited;
      // The commands of a killed runner live on for a moment; each has the place in its arguments.
      await until(() => !Bun.spawnSync(["ps", "-A", "-o", "args="]).stdout.toString().includes(place.home));
      place.ageLeases();
    }
    await place.start(["run", "--once"]);
    place.ageLeases();
    await place.start(["run", "--once"]);
    check(place);
    expect(place.rows().filter(({ status }) => status !== "delivered" && status !== "dead_letter")).toEqual([]);
  },
);

test.concurrent("SIGTERM in the middle loses nothing and repeats nothing", async () => {
  using place = recording(0.05, { concurrency: 4 });
  const started = (): number => place.lines("log").filter((line) => line.startsWith("start")).length;
  for (const more of [1, 5, 12]) {
    await place.enqueue(...many(20));
    const before = started();
    const runner = place.background("run");
    await until(() => started() >= before + more);
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    expect(place.rows().filter(({ status }) => status === "delivering")).toEqual([]);
  }
  await place.drain();
  check(place);
  expect(place.rows().every(({ status, attempt }) => status === "delivered" && attempt === 1)).toBeTrue();
  expect(executions(place)).toHaveLength(60);
});

test.concurrent("a second runner takes nothing from a first that lives", async () => {
  using place = recording(0.5);
  await place.enqueue({});
  const first = place.background("run", "--once");
  await until(() => place.lines("log").length > 0);
  expect(await place.drain()).toMatchObject({ attempted: 0 });
  expect(await first.exited).toBe(0);
  check(place);
  expect(executions(place)).toHaveLength(1);
});

test.concurrent("a runner that was frozen until its lease was over changes nothing", async () => {
  using place = recording(1);
  await place.enqueue({});
  const frozen = place.background("run", "--once");
  await until(() => place.lines("log").length > 0);
  frozen.kill("SIGSTOP");
  await until(() => place.lines("log").length === 2);
  place.ageLeases();
  expect(await place.drain()).toMatchObject({ attempted: 1, delivered: 1 });
  const before = place.rows();
  frozen.kill("SIGCONT");
  expect(await frozen.exited).toBe(0);
  expect(place.rows()).toEqual(before);
  check(place);
  expect(place.row(1)).toMatchObject({ status: "delivered", attempt: 2 });
});

/** Uniform numbers in [0, 1) from a seed. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
