/**
 * One of the databases that a runner drains: its connection, its commands in hand, its trouble. What is wrong with one is told
 * and waited for without keeping the others.
 */
import type { Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import type { Settlement, Store } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import { connection } from "./connection.ts";
import { crew } from "./crew.ts";
import type { Instant } from "./instant.ts";
import { leases } from "./lease.ts";
import type { Plan } from "./plan.ts";
import { stuck } from "./stuck.ts";
import { leaseTerms, type Passed, taken, tick, type TickSeams } from "./tick.ts";
import { patienceMs, trouble } from "./trouble.ts";
import type { Told } from "./told.ts";
import type { Watcher } from "./wake.ts";

/** Where a source is and how it is opened. */
export interface SourceSpec {
  /** As the settings call it: `default`, `shop`. */
  readonly name: string;
  readonly path: string;
  readonly open: () => Promise<Store>;
}

export interface Source {
  readonly name: string;
  readonly path: string;
  /**
   * One pass, unless it is left alone because of trouble.
   * @param slots how many commands more may run; those of its outcomes that are refused stay taken
   */
  pass(plan: Plan, slots: number): Promise<Passed>;
  /** Starts the command of a claim that was made elsewhere, if it is still ours. */
  take(claim: Dispatch, plan: Plan): Promise<void>;
  /** Whether another process has changed it since this was last asked; true when that cannot be known. */
  changed(): Promise<boolean>;
  running(): number;
  unwritten(): readonly Settlement[];
  /** Whether something finished that a pass could write now. */
  wantsPass(): boolean;
  /** Nothing more is claimed from it. */
  retire(): void;
  isRetired(): boolean;
  /** It has become newer than this binary. */
  isOutdated(): boolean;
  /** No command runs and every outcome is written. */
  isDone(): boolean;
  /** The trouble that it is in; null when it answers. */
  error(): OutboxError | null;
  /** Whether it ever answered. */
  hasAnswered(): boolean;
  /** Why a runner that is to end goes without all its outcomes; null while there is patience left. */
  givesUp(stoppedAtMs: number | null): OutboxError | null;
  /**
   * Milliseconds until it wants another pass by itself; Infinity when nothing is ahead.
   * @param since when the last pass began: what came due after it that pass may have missed, and is wanted at once
   */
  untilMs(plan: Plan, since: Instant): Promise<number>;
  /** Work of the store that is not a tick. Null when the database does not answer. */
  quietly<T>(work: (store: Store) => Promise<T>): Promise<T | null>;
  /** Looks whether the file is still the one that is open. When it is not, the next pass opens the new one, whatever the trouble was. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export type SourceSeams = Omit<TickSeams, "connection" | "crew" | "stuck" | "leases" | "name" | "path"> & {
  readonly transport: Transport;
  /** Ends running commands, and ends them without waiting. */
  readonly kill: AbortSignal;
  readonly now: AbortSignal;
  readonly told: Told;
  /** Wakes the runner. */
  readonly ring: () => void;
  /** Watches the file. Null: nobody waits for what others do. */
  readonly watch: ((path: string) => Watcher) | null;
};

/** Longest sleep between two tries while outcomes wait to be written, or while another process holds the lock. */
const LONGEST_RETRY_MS = 1_000;

export function source(spec: SourceSpec, seams: SourceSeams): Source {
  const { clock, told, drain } = seams;
  const eyes = seams.watch?.(spec.path) ?? null;
  const store = connection(async () => {
    const opened = await spec.open();
    eyes?.opened();
    return opened;
  });
  const minded = leases(clock);
  const { transport, kill, now, ring } = seams;
  const hands = crew({ clock, transport, database: spec.path, kill, now, leases: minded, ring });
  const refused = stuck(clock);
  const lasting = trouble(clock, {
    begins: (error) => told.begin(`source ${spec.path}`, { kind: "trouble", source: spec.name, error }, error.message),
    ends: () => told.end(`source ${spec.path}`, { kind: "trouble over", source: spec.name }),
  });
  const parts: TickSeams = { ...seams, name: spec.name, path: spec.path, connection: store, crew: hands, stuck: refused, leases: minded };
  let retired = false;
  let outdated = false;
  let answered = false;
  let restsUntilMs = 0;
  const unwritten = (): Settlement[] => [...refused.settlements(), ...hands.finished];
  const isRetired = (): boolean => retired || outdated || seams.stop.aborted;

  return {
    name: spec.name,
    path: spec.path,
    async pass(plan, slots) {
      if (clock.monotonicMs() < restsUntilMs) return { result: "idle", asked: false };
      const passed = await tick(parts, plan, isRetired() ? 0 : Math.max(0, slots - refused.settlements().length));
      if (passed.result === "trouble") {
        lasting.met(passed.error);
        const urgent = passed.error.kind === "busy" || unwritten().length > 0 || drain || isRetired();
        restsUntilMs = clock.monotonicMs() + lasting.waitMs(urgent ? LONGEST_RETRY_MS : plan.intervalMs);
      } else if (passed.result !== "idle" || passed.asked) {
        outdated ||= passed.result === "outdated";
        answered = true;
        lasting.over();
      }
      return passed;
    },
    take: (claim, plan) => taken(parts, plan, claim),
    async changed() {
      if (clock.monotonicMs() < restsUntilMs) return false;
      if (!store.isOpen()) return true;
      try {
        return await store.use((open) => open.changed());
      } catch {
        return true;
      }
    },
    running: () => hands.running(),
    unwritten,
    wantsPass: () => hands.finished.length > 0 && clock.monotonicMs() >= restsUntilMs,
    retire: () => {
      retired = true;
    },
    isRetired,
    isOutdated: () => outdated,
    isDone: () => hands.running() === 0 && unwritten().length === 0,
    error: () => lasting.error(),
    hasAnswered: () => answered,
    givesUp(stoppedAtMs) {
      const error = lasting.error();
      const first = error === null ? refused.first() : { error, sinceMs: lasting.sinceMs() ?? 0 };
      if (first === null || hands.running() > 0 || (error === null && hands.finished.length > 0)) return null;
      const sinceMs = Math.max(first.sinceMs, hands.lastFinishedMs(), stoppedAtMs ?? 0);
      return clock.monotonicMs() - sinceMs >= patienceMs(first.error, unwritten().length > 0, isRetired()) ? first.error : null;
    },
    async untilMs(plan, since) {
      if (restsUntilMs > since.ms) return Math.max(0, restsUntilMs - clock.monotonicMs());
      const own = Math.min(refused.againInMs(), minded.nextInMs());
      if (isRetired()) return own;
      const patience = { ...leaseTerms(plan, seams.faults), isAlive: seams.isAlive };
      const moment = await this.quietly((open) => open.nextMoment({ since: since.s, patience }));
      return moment === null ? own : Math.min(own, Math.max(1, (moment - clock.now()) * 1_000));
    },
    async quietly(work) {
      if (clock.monotonicMs() < restsUntilMs) return null;
      try {
        return await store.use(work);
      } catch {
        return null; // the next pass meets it and says so
      }
    },
    async check() {
      const change = eyes?.check() ?? "same";
      if (change === "gone or replaced") await closeQuietly(() => store.close());
      if (change !== "same") restsUntilMs = 0;
    },
    async close() {
      eyes?.close();
      await closeQuietly(() => store.close());
    },
  };
}

/** A handle that cannot be closed dies with the process; the trouble was told when it began. */
async function closeQuietly(close: () => Promise<void>): Promise<void> {
  try {
    await close();
  } catch {
    // Nothing is left to save.
  }
}
