/** Any schedule of messages, commands, runners, kills and failing commits: what must hold afterwards, whatever happened. */
import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { Dispatch, Transition } from "../../src/core/dispatch.ts";
import type { Plan } from "../../src/dispatcher/plan.ts";
import type { Counters } from "../../src/dispatcher/report.ts";
import type { Ran } from "../../src/dispatcher/run.ts";
import { ack } from "../../src/store/transitions.ts";
import { enter, T0 } from "../fixtures/world.ts";
import { type Act, type Mishap, POLICY, route, type Runner, type World, world } from "./world.ts";

setDefaultTimeout(60_000);

interface Message {
  readonly atMs: number;
  readonly kind: "plain" | "failing config" | "unknown";
  readonly maxAttempts: number;
  readonly ack: boolean;
  readonly ackAfterMs: number | null;
  readonly expiresInMs: number | null;
  readonly delayMs: number;
  readonly acts: readonly Act[];
}

interface Shift {
  readonly atMs: number;
  readonly mode: "once" | "forever";
  readonly ends: "stop" | "stop twice" | "kill";
  /** For how long it is frozen half way. */
  readonly frozenMs: number;
  readonly afterMs: number;
  readonly mishaps: readonly Mishap[];
}

interface Schedule {
  readonly messages: readonly Message[];
  readonly shifts: readonly Shift[];
}

const act: fc.Arbitrary<Act> = fc.record(
  {
    outcome: fc.constantFrom("ok", "fail", "fail", "reject", "fault", "exhausted", "hang"),
    ms: fc.constantFrom(0, 1, 40, 900, 9_999),
    retryAfterMs: fc.constantFrom(0, 1_500, 90_000),
  },
  { requiredKeys: ["outcome", "ms"] },
);
const message: fc.Arbitrary<Message> = fc.record({
  atMs: fc.integer({ min: 0, max: 120_000 }),
  kind: fc.constantFrom("plain", "plain", "plain", "failing config", "unknown"),
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  ack: fc.boolean(),
  ackAfterMs: fc.option(fc.integer({ min: 0, max: 200_000 })),
  expiresInMs: fc.option(fc.integer({ min: 1, max: 200_000 })),
  delayMs: fc.constantFrom(0, 0, 0, 50_000),
  acts: fc.array(act, { maxLength: 5 }),
});
const shift: fc.Arbitrary<Shift> = fc.record({
  atMs: fc.integer({ min: 0, max: 150_000 }),
  mode: fc.constantFrom("once", "forever"),
  ends: fc.constantFrom("stop", "stop twice", "kill"),
  afterMs: fc.integer({ min: 0, max: 60_000 }),
  frozenMs: fc.constantFrom(0, 0, 0, 3_000, 60_000),
  mishaps: fc.array(fc.constantFrom<Mishap>("none", "none", "none", "busy", "io", "kill before", "kill after"), { maxLength: 8 }),
});
const schedule: fc.Arbitrary<Schedule> = fc.record({
  messages: fc.array(message, { minLength: 1, maxLength: 10 }),
  shifts: fc.array(shift, { maxLength: 5 }),
});

/** No default template would be a fault of its own, so only routes: an unknown kind is unresolvable. */
const PLAN: Partial<Plan> = {
  routes: new Map([
    ["plain", route()],
    ["failing config", route({ policy: { ...POLICY, onConfigError: "fail" } })],
  ]),
  fallback: null,
  concurrency: 3,
};

test("every message reaches its end, whatever was killed, and nothing was sent too often or twice at a time", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (plan) => {
      const place = world();
      const { ended: runners, frozen } = await play(place, plan);
      ended(place);
      bounded(place);
      neverTwiceAtATime(place, frozen);
      chained(place);
      onSchedule(place);
      for (const { runner, ran } of runners) counted(place, runner, ran.counters);
    }),
    { numRuns: 150, seed: 20_261_129, examples: KEPT.map((kept) => [kept]) },
  );
});

/** Schedules that once failed. */
const KEPT: readonly Schedule[] = [];

/** Plays the schedule and then lets an undisturbed runner finish. Answers the runners that came to their own end, and who was frozen. */
async function play(
  place: World,
  { messages, shifts }: Schedule,
): Promise<{
  readonly ended: readonly { readonly runner: Runner; readonly ran: Ran }[];
  readonly frozen: ReadonlySet<string>;
}> {
  const { clock, db, script } = place;
  for (const { atMs, ...given } of messages)
    clock.at(atMs, () => {
      const now = clock.now();
      const dueS = now + given.delayMs / 1_000;
      const answer = enter(
        db,
        {
          kind: given.kind,
          max_attempts: given.maxAttempts,
          ack_required: given.ack,
          not_before: dueS,
          ...(given.expiresInMs === null ? {} : { expires_at: dueS + given.expiresInMs / 1_000 }),
        },
        now,
      );
      script.set(answer.seq, [...given.acts]);
      const token = answer.ack_token;
      if (token !== null && given.ackAfterMs !== null) clock.at(atMs + given.ackAfterMs, () => void ack(db, answer, token, clock.now()));
    });
  const runners: Runner[] = [];
  for (const { atMs, mode, ends, afterMs, frozenMs, mishaps } of shifts)
    clock.at(atMs, () => {
      const runner = place.runner(mode, PLAN);
      runner.mishaps.push(...mishaps);
      runners.push(runner);
      if (frozenMs > 0) clock.at(atMs + afterMs / 2, () => runner.freeze(frozenMs));
      clock.at(atMs + afterMs, () => (ends === "kill" ? runner.kill() : runner.stop()));
      if (ends === "stop twice") clock.at(atMs + afterMs + 500, () => runner.now());
    });
  await clock.until(clock.sleep(400_000));
  const last = place.runner("forever", PLAN);
  runners.push(last);
  // A message takes at most 4 attempts, 4 waits of at most 16 minutes, and as many leases.
  for (let minutes = 0; minutes < 240 && unended(place).length > 0; minutes += 1) await clock.until(clock.sleep(60_000));
  last.stop();
  const ended: { runner: Runner; ran: Ran }[] = [];
  for (const runner of runners) {
    const ran = await clock.until(runner.over);
    if (ran !== null) ended.push({ runner, ran });
  }
  return { ended, frozen: new Set(runners.filter((runner) => runner.wasFrozen()).map(({ name }) => name)) };
}

function ended(place: World): void {
  expect(unended(place)).toEqual([]);
}

function unended({ rows }: World): Dispatch[] {
  return rows().filter(({ status }) => status === "pending" || status === "delivering");
}

function bounded({ rows, commands }: World): void {
  for (const row of rows()) {
    expect(row.attempt).toBeLessThanOrEqual(row.max_attempts);
    expect(commands.filter(({ seq }) => seq === row.seq).length).toBeLessThanOrEqual(row.max_attempts);
  }
  expect(new Set(commands.map(({ token }) => token)).size).toBe(commands.length);
}

/** Two commands of one row only when the runner of the first was killed or frozen until its lease was over. */
function neverTwiceAtATime({ commands }: World, frozen: ReadonlySet<string>): void {
  for (const [at, first] of commands.entries())
    for (const second of commands.slice(at + 1))
      if (first.seq === second.seq && second.startedS < (first.endedS ?? Number.POSITIVE_INFINITY) && !frozen.has(first.runner)) {
        expect(first.orphan).toBeTrue();
        expect(second.startedS - first.startedS).toBeGreaterThanOrEqual(15);
      }
}

/** One history row a move, without a gap, from the birth to what the row is. */
function chained({ rows, history }: World): void {
  const all = history();
  for (const row of rows()) {
    const own = all.filter(({ entity_id }) => entity_id === row.id);
    expect(own.map(({ previous_status }) => previous_status)).toEqual([null, ...own.slice(0, -1).map(({ status }) => status)]);
    expect(own.at(-1)).toMatchObject({ status: row.status, reason_code: row.reason_code, created_at: row.updated_at });
  }
}

/** After a failure the next claim comes no earlier than the backoff says: attempts follow the schedule, not the ticks. */
function onSchedule({ rows, history, commands }: World): void {
  const all = history();
  for (const row of rows())
    for (const [at, move] of all.filter(({ entity_id }) => entity_id === row.id).entries()) {
      const next = all.filter(({ entity_id }) => entity_id === row.id)[at + 1];
      if (move.reason_code !== "dispatch.pending.retry_backoff" || next?.status !== "delivering") continue;
      const waitedS = next.created_at - move.created_at;
      const asked = /again in (.*), as the command asked$/.exec(move.reason_summary)?.[1];
      const waitS =
        asked === undefined ? 30 * 2 ** attemptOf(move) : ({ "0s": 0, "1s500ms": 1.5, "1m30s": 90 } as Record<string, number>)[asked];
      expect(waitedS).toBeGreaterThanOrEqual((waitS ?? Number.NaN) - 0.001);
    }
  for (const command of commands) expect(command.startedS).toBeGreaterThanOrEqual(T0);
}

function attemptOf({ metadata }: Transition): number {
  return (JSON.parse(metadata) as { attempt: number }).attempt;
}

/** The five counters say what the history says of this runner. */
function counted({ history }: World, { name, events }: Runner, counters: Counters): void {
  const own = history().filter(({ actor }) => actor === name);
  const by = (...reasons: string[]): Transition[] =>
    own.filter(({ reason_code }) => reasons.some((reason) => reason_code.endsWith(reason)));
  const endedByClaim = (move: Transition): boolean =>
    move.reason_code === "dispatch.expired.deadline" ||
    (move.status === "dead_letter" && (move.previous_status === "pending" || move.reason_summary.endsWith("vanished")));
  const ackedMeanwhile = events.filter((event) => event.kind === "settled" && event.result === "acked" && event.outcome.kind === "ok");
  expect(counters).toEqual({
    attempted: by(".delivering.attempt").length + own.filter(endedByClaim).length,
    delivered: by(".transport_ok").length + ackedMeanwhile.length,
    dead_letter: own.filter(({ status }) => status === "dead_letter").length,
    expired: by(".expired.deadline").length,
    retried: by(".retry_backoff").length,
  });
}
