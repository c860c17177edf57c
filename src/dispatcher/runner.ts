/** What both ways of running share: one crew, one bell, one connection, and the rules of stopping. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Settlement, Store } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import { bell } from "./bell.ts";
import { type Connection, connection } from "./connection.ts";
import { crew } from "./crew.ts";
import { faults } from "./faults.ts";
import type { Plan } from "./plan.ts";
import { type Counters, newCounters, type Tell } from "./report.ts";
import { stuck } from "./stuck.ts";
import { type Passed, tick, type TickSeams } from "./tick.ts";
import { patienceMs, trouble } from "./trouble.ts";

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
  /** Gets a function that wakes the runner (the plan has changed). */
  readonly onWake?: (wake: () => void) => void;
}

export interface Ran {
  readonly counters: Counters;
  /** The first trouble, for the exit code; null when everything was worked through. */
  readonly trouble: OutboxError | null;
}

export interface Runner {
  pass(): Promise<Passed>;
  /** No command runs and every outcome is written. */
  isDone(): boolean;
  /** Nothing more is claimed: it was stopped, or the database is newer than this binary. */
  isRetired(): boolean;
  /** The database has become newer: what runs is settled, nothing more is claimed. */
  retire(): void;
  /**
   * What keeps outcomes from being written, once no command runs and it has lasted so long that a runner which is to end goes
   * without them; null while there is patience left.
   * @param error what the last pass met; null: nothing but what is stuck
   */
  givesUp(error: OutboxError | null): OutboxError | null;
  /** Sleeps until something finishes or is asked, or a refused outcome may be tried again; at most `ms`. */
  rest(ms: number): Promise<void>;
  /** The same after trouble, for longer with every failure in a row. */
  backOff(error: OutboxError): Promise<void>;
  /** Milliseconds until something is due, a lease ends, or a stopped route may be tried: at most the interval. */
  untilDueMs(): Promise<number>;
  /** Whatever needs a person although everything was worked through; null when nothing does. */
  fault(): OutboxError | null;
  /** Tells what stays unwritten and closes the database. */
  end(error: OutboxError | null): Promise<Ran>;
}

/** Longest sleep between two tries while outcomes wait to be written, or while another process holds the lock. */
const LONGEST_RETRY_MS = 1_000;

/** @param drains whether it ends by itself, when what was due at its start is worked through */
export function startRunner(seams: RunnerSeams, drains: boolean): Runner {
  const { clock, stop, now, tell } = seams;
  const alarm = bell(clock);
  const kill = new AbortController();
  const hands = crew(clock, seams.transport, kill.signal, alarm.ring);
  const refused = stuck(clock);
  const stops = faults(clock, tell, () => seams.plan().intervalMs);
  const counters = newCounters();
  const store = connection(seams.open);
  const lasting = trouble(clock, tell);
  const parts: TickSeams = {
    clock,
    connection: store,
    crew: hands,
    stuck: refused,
    faults: stops,
    counters,
    tell,
    holder: seams.holder,
    stop,
    drain: drains ? { dueBy: clock.now(), left: new Set() } : null,
  };
  let outdated = false;
  let stoppedAtMs: number | null = null;
  stop.addEventListener("abort", alarm.ring);
  now.addEventListener("abort", () => {
    kill.abort("now");
    alarm.ring();
  });
  seams.onWake?.(alarm.ring);

  /** Infinity when there is nothing to wait for: no signal yet, or the groups are being ended already. */
  const graceLeftMs = (): number => {
    if (!stop.aborted || kill.signal.aborted) return Number.POSITIVE_INFINITY;
    stoppedAtMs ??= clock.monotonicMs();
    return Math.max(0, stoppedAtMs + seams.plan().shutdownGraceMs - clock.monotonicMs());
  };
  const isRetired = (): boolean => outdated || stop.aborted;
  const unwritten = (): Settlement[] => [...refused.settlements(), ...hands.finished];
  const rest = async (ms: number): Promise<void> => {
    await alarm.wait(Math.min(ms, graceLeftMs(), refused.againInMs()));
    await clock.sleep(0); // all that finished in this turn comes in
  };

  return {
    async pass() {
      if (graceLeftMs() === 0) kill.abort();
      const plan = seams.plan();
      stops.look(plan);
      const passed = await tick(parts, plan, !isRetired());
      if (passed.result === "trouble") lasting.met(passed.error);
      else if (passed.result !== "idle" || passed.asked) lasting.over();
      // Signals, timers and the output of commands come in between, however much there is to move.
      if (passed.result === "moved") await clock.sleep(0);
      return passed;
    },
    isDone: () => hands.running() === 0 && unwritten().length === 0,
    isRetired,
    retire: () => {
      outdated = true;
    },
    givesUp(error) {
      const first = error === null ? refused.first() : { error, sinceMs: lasting.sinceMs() ?? 0 };
      if (first === null || hands.running() > 0 || (error === null && hands.finished.length > 0)) return null;
      const sinceMs = Math.max(first.sinceMs, hands.lastFinishedMs(), stoppedAtMs ?? 0);
      return clock.monotonicMs() - sinceMs >= patienceMs(first.error, unwritten().length > 0, isRetired()) ? first.error : null;
    },
    rest,
    async backOff(error) {
      const urgent = error.kind === "busy" || unwritten().length > 0 || drains || isRetired();
      await rest(lasting.waitMs(urgent ? LONGEST_RETRY_MS : seams.plan().intervalMs));
    },
    async untilDueMs() {
      const { intervalMs } = seams.plan();
      if (isRetired()) return intervalMs;
      const moment = await nextMoment(store);
      const untilMs = moment === null ? intervalMs : Math.max(1, (moment - clock.now()) * 1_000);
      return Math.min(untilMs, intervalMs, stops.againInMs(), stops.pausedForMs() || Number.POSITIVE_INFINITY);
    },
    fault: () => stops.first,
    async end(error) {
      for (const { claim, outcome } of unwritten()) tell({ kind: "unwritten", dispatch: claim, outcome });
      await closeQuietly(store);
      const newer = new OutboxError("busy", "the database was brought to a newer schema", "start the newer outbox");
      if (outdated) tell({ kind: "trouble", error: newer });
      return { counters, trouble: outdated ? newer : error };
    },
  };
}

/** Null as well when the database does not answer: the next pass meets that and says so. */
async function nextMoment(store: Connection): Promise<number | null> {
  try {
    return await store.use((open) => open.nextMoment());
  } catch {
    return null;
  }
}

/** At the end there is nothing left to save: a handle that cannot be closed dies with the process. */
async function closeQuietly(store: Connection): Promise<void> {
  try {
    await store.close();
  } catch {
    // The trouble was told when it began.
  }
}
