/** What both ways of running share: the sources, one bell, one pool of slots, and the rules of stopping. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Transport } from "../transport/transport.ts";
import { bell } from "./bell.ts";
import { faults } from "./faults.ts";
import { instant } from "./instant.ts";
import type { Plan } from "./plan.ts";
import { type Counters, newCounters, type Tell } from "./report.ts";
import { type Source, source, type SourceSpec } from "./sources.ts";
import { told } from "./told.ts";
import type { Watcher } from "./wake.ts";

export interface RunnerSeams {
  readonly clock: Clock;
  readonly transport: Transport;
  /** The databases to drain, in their order; each file once. */
  readonly sources: readonly SourceSpec[];
  /** The plan in force; asked at every tick, so that settings can be read again. */
  readonly plan: () => Plan;
  readonly tell: Tell;
  readonly holder: string;
  /** Whether this holder is a process that still lives on this host. */
  readonly isAlive: (holder: string) => boolean;
  /** Watches a database; calls `look` when something may have happened to it. */
  readonly watch: (path: string, look: () => void) => Watcher;
  /** First signal: claim no more, let running commands finish. */
  readonly stop: AbortSignal;
  /** Second signal: end them now. */
  readonly now: AbortSignal;
  /** Gets a function that wakes the runner (the plan has changed). */
  readonly onWake?: (wake: () => void) => void;
}

export interface Ran {
  readonly counters: Counters;
  /** The first trouble, for the exit code; null when everything was worked through. */
  readonly trouble: OutboxError | null;
}

export interface Runner {
  readonly sources: readonly Source[];
  /** One pass over all sources. Answers whether anything moved. */
  pass(): Promise<"moved" | "idle">;
  /** Each second: looks whether files or settings were replaced, which no event may tell. */
  beat(): Promise<void>;
  untilBeatMs(): number;
  /** When it was told to stop, on the monotonic clock; null: it was not. */
  stoppedAtMs(): number | null;
  /** Sleeps until something finishes, is asked or is due; at most `ms`. */
  rest(ms: number): Promise<void>;
  /** Whether another process changed something since this was last asked, or the plan has changed. */
  news(): Promise<boolean>;
  /** Milliseconds until something is due, a lease ends or wants renewal, or a stopped route may be tried: at most the interval. */
  untilDueMs(): Promise<number>;
  /** Whatever needs a person although everything was worked through; null when nothing does. */
  fault(): OutboxError | null;
  /** Small batches of what is past its window. Answers whether there is more. */
  sweep(): Promise<boolean>;
  /** Tells what stays unwritten and closes the databases. */
  end(error: OutboxError | null): Promise<Ran>;
}

/** The look at clock, settings, files and `data_version` that catches what no event told, in milliseconds. */
export const HEARTBEAT_MS = 1_000;
/** Nothing past its window just now: how long until the next look. */
const SWEEP_AGAIN_MS = 60_000;

export function newerSchema(path: string): OutboxError {
  return new OutboxError("busy", `database ${path} was brought to a newer schema`, "start the newer outbox");
}

/**
 * @param drains whether it ends by itself, when what was due at its start is worked through
 */
export function startRunner(seams: RunnerSeams, drains: boolean): Runner {
  const { clock, stop, now, tell } = seams;
  const alarm = bell(clock);
  const kill = new AbortController();
  const memory = told(() => clock.monotonicMs(), tell);
  const stops = faults(clock, memory, () => seams.plan().intervalMs);
  const counters = newCounters();
  let stoppedAtMs: number | null = null;
  let happened = false;
  let turn = 0;
  let outdated = false;
  let sweepsAtMs = 0;
  /** What comes due after it may have been missed by the last pass. */
  let passBegan = instant(clock);
  let beatsAtMs = clock.monotonicMs() + HEARTBEAT_MS;
  /** Deleted by the sweep that is under way. */
  const deadLetters = new Map<Source, number>();
  stop.addEventListener("abort", alarm.ring);
  now.addEventListener("abort", () => {
    kill.abort();
    alarm.ring();
  });
  seams.onWake?.(() => {
    happened = true;
    alarm.ring();
  });
  const drained = drains ? clock.now() : null;
  const sources = seams.sources.map((spec) =>
    source(spec, {
      clock,
      transport: seams.transport,
      kill: kill.signal,
      now,
      faults: stops,
      told: memory,
      counters,
      tell,
      holder: seams.holder,
      isAlive: seams.isAlive,
      stop,
      ring: alarm.ring,
      drain: drained === null ? null : { dueBy: drained, left: new Set() },
      // Who drains what was due at the start does not wait for more.
      watch: drains ? null : (path) => seams.watch(path, alarm.ring),
    }),
  );

  /** Infinity when there is nothing to wait for: no signal yet, or the groups are being ended already. */
  const graceLeftMs = (): number => {
    if (!stop.aborted || kill.signal.aborted) return Number.POSITIVE_INFINITY;
    stoppedAtMs ??= clock.monotonicMs();
    return Math.max(0, stoppedAtMs + seams.plan().shutdownGraceMs - clock.monotonicMs());
  };
  const answering = (): Source[] => sources.filter((each) => each.hasAnswered() && each.error() === null);
  const beatIsDue = (): boolean => !drains && clock.monotonicMs() >= beatsAtMs;
  const tellSwept = (each: Source): void => {
    const count = deadLetters.get(each) ?? 0;
    deadLetters.delete(each);
    if (count > 0) tell({ kind: "swept", source: each.name, deadLetters: count });
  };
  /** Outcomes of another source that cannot be written take no slot: they must not keep this one from its work. */
  const freeSlots = ({ concurrency }: Plan): number => Math.max(0, concurrency - sources.reduce((sum, each) => sum + each.running(), 0));
  /** First the source with the fewest commands; another one each time among equals, so that none is always the last. */
  const inTurn = (): Source[] => {
    turn = (turn + 1) % Math.max(1, sources.length);
    return [...sources.slice(turn), ...sources.slice(0, turn)].toSorted((one, other) => one.running() - other.running());
  };
  return {
    sources,
    async pass() {
      if (beatIsDue()) await this.beat();
      if (graceLeftMs() === 0) kill.abort();
      const plan = seams.plan();
      passBegan = instant(clock);
      stops.look(plan);
      let moved = false;
      let wentWithout = false;
      const order = inTurn();
      for (const [at, each] of order.entries()) {
        // None takes all that is free; what the others leave is given out at the next pass.
        const share = Math.ceil(freeSlots(plan) / (order.length - at));
        const passed = await each.pass(plan, share);
        if (share === 0) wentWithout = true;
        if (passed.result === "moved") moved = true;
        if (passed.result === "outdated" && !outdated) {
          outdated = true;
          tell({ kind: "trouble", source: each.name, error: newerSchema(each.path) });
        }
      }
      // A slot became free while the sources after it were asked.
      if (wentWithout && freeSlots(plan) > 0 && !stop.aborted) moved = true;
      await memory.flush(answering());
      // Signals, timers and the output of commands come in between, however much there is to move.
      if (moved) await clock.sleep(0);
      return moved ? "moved" : "idle";
    },
    async beat() {
      if (!beatIsDue()) return;
      beatsAtMs = clock.monotonicMs() + HEARTBEAT_MS;
      seams.plan();
      for (const each of sources) await each.check();
    },
    untilBeatMs: () => Math.max(0, beatsAtMs - clock.monotonicMs()),
    stoppedAtMs: () => stoppedAtMs,
    async rest(ms) {
      await alarm.wait(Math.min(ms, graceLeftMs()));
      await clock.sleep(0); // all that finished in this turn comes in
    },
    async news() {
      const asked = happened;
      happened = false;
      const changed = await Promise.all(sources.map((each) => each.changed()));
      return asked || changed.includes(true);
    },
    async untilDueMs() {
      const plan = seams.plan();
      const moments = await Promise.all(sources.map((each) => each.untilMs(plan, passBegan)));
      return Math.min(plan.intervalMs, stops.againInMs(passBegan.ms), ...moments);
    },
    fault: () => stops.first,
    async sweep() {
      if (!drains && clock.monotonicMs() < sweepsAtMs) return false;
      let more = false;
      for (const each of sources) {
        if (each.isRetired()) continue;
        const swept = await each.quietly((store) => store.sweep(seams.plan().retention, seams.isAlive));
        if (swept === null) continue;
        deadLetters.set(each, (deadLetters.get(each) ?? 0) + swept.deadLetters);
        if (!swept.more) tellSwept(each);
        more ||= swept.more;
      }
      if (!more) sweepsAtMs = clock.monotonicMs() + SWEEP_AGAIN_MS;
      return more;
    },
    async end(error) {
      stops.conclude();
      await memory.flush(answering());
      for (const each of sources) {
        tellSwept(each);
        for (const { claim, outcome } of each.unwritten()) tell({ kind: "unwritten", dispatch: claim, outcome });
        await each.close();
      }
      return { counters, trouble: error };
    },
  };
}
