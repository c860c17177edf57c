/** Taking turns: `runOnce` drains what was due at its start, `runForever` goes on until it is stopped. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Store } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import { type Bell, bell } from "./bell.ts";
import { type Connection, connection } from "./connection.ts";
import { crew } from "./crew.ts";
import { faults } from "./faults.ts";
import type { Plan } from "./plan.ts";
import { type Counters, newCounters, type Tell } from "./report.ts";
import { type Passed, tick, type TickSeams } from "./tick.ts";

export interface RunnerSeams {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly open: () => Promise<Store>;
  /** The plan in force; asked at every tick, so that settings can be read again. */
  readonly plan: () => Plan;
  readonly tell: Tell;
  readonly holder: string;
  /** First signal: claim no more, let running commands finish. */
  readonly stop: AbortSignal;
  /** Second signal: end them now. */
  readonly now: AbortSignal;
  /** Gets a function that wakes the runner (settings to be read again). */
  readonly onWake?: (wake: () => void) => void;
}

export interface Ran {
  readonly counters: Counters;
  /** The first trouble, for the exit code; null when everything was worked through. */
  readonly trouble: OutboxError | null;
}

/** How long each outcome may take to be written once the runner is stopped (DESIGN section 8). */
const LAST_SETTLE_MS = 5_000;
/** A lock that others keep for a moment is everyday life. */
const LOCK_WORTH_TELLING_MS = 5_000;
/** How long `runOnce` waits for a lock with nothing in hand. */
const PATIENCE_MS = 30_000;
/** How long it keeps outcomes that a lock keeps from being written. Afterwards they are sent again: at least once. */
const PATIENCE_WITH_OUTCOMES_MS = 300_000;

/** Drains what was due at its start, rows behind it in order included, then returns. */
export async function runOnce(seams: RunnerSeams): Promise<Ran> {
  const runner = start(seams);
  const dueBy = seams.clock.now();
  for (;;) {
    const passed = await runner.pass(dueBy);
    if (passed.result === "moved") continue;
    if (passed.result === "trouble") {
      if (await runner.givesUp(passed.error)) return runner.end(passed.error);
      continue;
    }
    if (passed.result === "outdated") runner.retire();
    if (runner.isDone()) return runner.end(runner.isOutdated() ? newerSchema() : runner.fault());
    await runner.rest(Number.POSITIVE_INFINITY);
  }
}

/** Goes on until it is stopped, or until the database becomes newer than this binary. */
export async function runForever(seams: RunnerSeams): Promise<Ran> {
  const runner = start(seams);
  let opened = false;
  for (;;) {
    const passed = await runner.pass(null);
    if (passed.result === "moved") continue;
    if (passed.result === "trouble") {
      // Newer already at the start: another binary is needed, waiting does not help.
      if (!opened && passed.error.kind === "settings") return runner.end(passed.error);
      if (seams.stop.aborted ? await runner.givesUp(passed.error) : await runner.backsOff()) return runner.end(null);
      continue;
    }
    opened = true;
    if (passed.result === "outdated") runner.retire();
    if (runner.isRetired() && runner.isDone()) return runner.end(runner.isOutdated() ? newerSchema() : null);
    await runner.rest(await runner.sleepMs());
  }
}

function newerSchema(): OutboxError {
  return new OutboxError("busy", "the database was brought to a newer schema", "start the newer outbox");
}

/** What both loops share: one crew, one bell, and the rules of stopping. */
function start(seams: RunnerSeams) {
  const { clock, stop, now, tell } = seams;
  const alarm: Bell = bell(clock);
  const kill = new AbortController();
  const hands = crew(seams.transport, kill.signal, alarm.ring);
  const counters = newCounters();
  const stops = faults(clock, tell, () => seams.plan().intervalMs);
  const store = connection(seams.open);
  const parts: TickSeams = { clock, connection: store, crew: hands, faults: stops, counters, tell, holder: seams.holder, stop };
  let outdated = false;
  let troubleSince: number | null = null;
  let troubleTold = false;
  let failures = 0;
  let stoppedAt: number | null = null;
  stop.addEventListener("abort", alarm.ring);
  now.addEventListener("abort", () => {
    kill.abort("now");
    alarm.ring();
  });
  seams.onWake?.(alarm.ring);

  /** Infinity when there is nothing to wait for: no signal yet, or the groups are being ended already. */
  const graceLeftMs = (): number => {
    if (!stop.aborted || kill.signal.aborted) return Number.POSITIVE_INFINITY;
    stoppedAt ??= clock.monotonicMs();
    return stoppedAt + seams.plan().shutdownGraceMs - clock.monotonicMs();
  };
  const isRetired = (): boolean => outdated || stop.aborted;

  return {
    async pass(dueBy: number | null): Promise<Passed> {
      if (graceLeftMs() <= 0) kill.abort();
      const plan = seams.plan();
      stops.look(plan);
      const passed = await tick(parts, plan, dueBy, !isRetired() && stops.pausedForMs() === 0);
      if (passed.result === "trouble") {
        failures += 1;
        troubleSince ??= clock.monotonicMs();
        const lastedMs = clock.monotonicMs() - troubleSince;
        if (!troubleTold && (passed.error.kind !== "busy" || lastedMs >= LOCK_WORTH_TELLING_MS)) {
          troubleTold = true;
          tell({ kind: "trouble", error: passed.error });
        }
      } else if (passed.result !== "idle" || passed.asked) {
        if (troubleTold) tell({ kind: "trouble over" });
        troubleTold = false;
        troubleSince = null;
        failures = 0;
      }
      return passed;
    },
    isDone: () => hands.running() === 0 && hands.finished.length === 0,
    isRetired,
    isOutdated: () => outdated,
    /** The database has become newer: what runs is settled, nothing more is claimed. */
    retire: () => {
      outdated = true;
    },
    /** Sleeps until something finishes or is asked, at most `ms`; then lets all that finished in this turn come in. */
    async rest(ms: number): Promise<void> {
      await alarm.wait(Math.min(ms, Math.max(0, graceLeftMs())));
      await new Promise((resolve) => setImmediate(resolve));
    },
    /** Sleeps a little because of trouble, or says that it is time to go. */
    async givesUp(error: OutboxError): Promise<boolean> {
      const waitedMs = clock.monotonicMs() - (troubleSince ?? clock.monotonicMs());
      const inHand = hands.running() > 0 || hands.finished.length > 0;
      if (hands.running() === 0 && waitedMs >= patienceMs(error, inHand, stop.aborted)) return true;
      await alarm.wait(Math.min(100, Math.max(0, graceLeftMs())));
      return false;
    },
    /** Sleeps longer with every failure in a row; never gives up. */
    async backsOff(): Promise<false> {
      const longest = hands.finished.length > 0 ? 1_000 : seams.plan().intervalMs;
      await alarm.wait(Math.min(100 * 2 ** Math.min(failures - 1, 20), longest, Math.max(0, graceLeftMs())));
      return false;
    },
    /** Until something is due, a lease ends, or a stopped route may be tried: at most the interval. */
    async sleepMs(): Promise<number> {
      const plan = seams.plan();
      if (isRetired()) return plan.intervalMs;
      const moment = await store.use((open) => open.nextMoment()).catch(() => null);
      const untilMs = moment === null ? plan.intervalMs : Math.max(1, (moment - clock.now()) * 1_000);
      return Math.min(untilMs, plan.intervalMs, stops.againInMs(), stops.pausedForMs() || Number.POSITIVE_INFINITY);
    },
    async end(error: OutboxError | null): Promise<Ran> {
      if (outdated && error !== null) tell({ kind: "trouble", error });
      for (const { claim, outcome } of hands.finished) tell({ kind: "unwritten", dispatch: claim, outcome });
      await closeQuietly(store);
      return { counters, trouble: error };
    },
    /** What a person must see to although everything was worked through. */
    fault: () => stops.first,
  };
}

/** How long trouble may last before a runner that is to end goes without having written everything. */
function patienceMs(error: OutboxError, inHand: boolean, stopped: boolean): number {
  if (stopped) return inHand ? LAST_SETTLE_MS : 0;
  if (error.kind === "busy") return inHand ? PATIENCE_WITH_OUTCOMES_MS : PATIENCE_MS;
  return inHand ? PATIENCE_MS : 0;
}

/** At the end there is nothing left to save: a handle that cannot be closed dies with the process. */
async function closeQuietly(store: Connection): Promise<void> {
  try {
    await store.close();
  } catch {
    // The trouble was told when it began.
  }
}
