/** Many who enqueue at the same time beside a runner that is busy. `scripts/system.ts` runs this: it keeps the machine busy for a minute. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { hostClock } from "../../src/host.ts";
import { ID } from "../cli/outbox.ts";
import { until, Workstation } from "../cli/running.ts";

setDefaultTimeout(300_000);

const ENQUEUERS = 8;
const ENQUEUES = 2_000;
const AT_MOST_MS = 60_000;
/** One-shot commands wait up to 30 s for the lock; nobody may come near. */
const WAIT_MS = 5_000;

test("eight loops of enqueues beside a busy run: none fails, none waits for long, every id is in the database once", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: ["/bin/true"], concurrency: 8, per_destination: 8 } });
  // A backlog, so that the runner is busy from the beginning to the end.
  await place.enqueue(...Array.from({ length: ENQUEUES }, (_, at) => ({ kind: "backlog", deliver_to: `seat-${at % 4}` })));
  const runner = place.background("run");
  await until(() => place.sql<{ n: number }>("SELECT count(*) AS n FROM dispatch_outbox WHERE status = 'delivered'")[0]?.n !== 0);
  const ids: string[] = [];
  const waitsMs: number[] = [];
  const began = hostClock.monotonicMs();
  let left = ENQUEUES;
  const loop = async (name: number): Promise<void> => {
    while (left > 0 && hostClock.monotonicMs() - began < AT_MOST_MS) {
      left -= 1;
      const at = hostClock.monotonicMs();
      ids.push(await place.run(["enqueue", "--kind", "ping", "--to", `seat-${name}`, "--text", "x".repeat(500)], { stdout: ID }));
      waitsMs.push(hostClock.monotonicMs() - at);
    }
  };
  await Promise.all(Array.from({ length: ENQUEUERS }, (_, name) => loop(name)));
  const sorted = waitsMs.toSorted((one, other) => one - other);
  const share = (part: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(0);
  console.log(`${ids.length} enqueues: p50 ${share(0.5)} ms, p99 ${share(0.99)} ms, at most ${share(1)} ms`);
  expect(Math.max(...waitsMs)).toBeLessThan(WAIT_MS);
  expect(new Set(ids).size).toBe(ids.length);
  const stored = place.rows().filter(({ kind }) => kind === "ping");
  expect(stored.map(({ id }): string => id).toSorted()).toEqual(ids.toSorted());
  await until(() => place.sql<{ n: number }>("SELECT count(*) AS n FROM dispatch_outbox WHERE status <> 'delivered'")[0]?.n === 0);
  expect(place.rows().every(({ attempt }) => attempt === 1)).toBeTrue();
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  expect(runner.said().match(/ (?:error|warn) /g)).toBeNull();
});
