/**
 * A workstation in virtual time: the real store over a database in memory, simulated commands, and runners that can be killed at
 * any moment. A kill drops every object of a runner and keeps the database; the commands that it started live on.
 */
import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { DEFAULT_BACKOFF } from "../../src/core/backoff.ts";
import type { Dispatch, Transition } from "../../src/core/dispatch.ts";
import { OutboxError } from "../../src/core/errors.ts";
import type { Policy } from "../../src/core/lifecycle.ts";
import type { Outcome, Report } from "../../src/core/outcome.ts";
import type { Clock } from "../../src/core/seams.ts";
import type { Plan, Route } from "../../src/dispatcher/plan.ts";
import type { Event } from "../../src/dispatcher/report.ts";
import { type Ran, runForever, runOnce } from "../../src/dispatcher/run.ts";
import { createStore, type Store } from "../../src/store/store.ts";
import type { Job, Transport } from "../../src/transport/transport.ts";
import { countedEntropy, memory, T0 } from "../fixtures/world.ts";
import { type VirtualClock, virtualClock } from "./time.ts";

/** What a simulated command does, and how long it takes. */
export interface Act {
  readonly outcome: "ok" | "fail" | "reject" | "fault" | "exhausted" | "hang";
  readonly ms: number;
  /** The wait that a failing command asks for. */
  readonly retryAfterMs?: number;
}

/** A command that started: what the world saw of it. */
export interface Command {
  readonly seq: number;
  readonly attempt: number;
  readonly token: string;
  readonly runner: string;
  readonly startedS: number;
  endedS: number | null;
  /** Its runner was killed while it ran. */
  orphan: boolean;
}

export interface World {
  readonly db: Database;
  readonly clock: VirtualClock;
  /** Every command that started, in order. */
  readonly commands: Command[];
  /** What the commands of a row do, one after the other; afterwards they succeed. */
  readonly script: Map<number, Act[]>;
  /** Starts a runner. */
  runner(mode: "once" | "forever", change?: Partial<Plan>): Runner;
  readonly rows: () => Dispatch[];
  readonly history: () => Transition[];
}

export interface Runner {
  readonly name: string;
  readonly ran: Promise<Ran>;
  /** The same, or null as soon as it is killed. */
  readonly over: Promise<Ran | null>;
  readonly events: Event[];
  /** The first signal, the second signal. */
  stop(): void;
  now(): void;
  /** SIGKILL. */
  kill(): void;
  /** SIGSTOP, and SIGCONT so many milliseconds later. */
  freeze(ms: number): void;
  /** Whether it was ever frozen. */
  wasFrozen(): boolean;
  isAlive(): boolean;
  wake(): void;
  /** The database fails at the next exchanges: before the commit, or it dies (`kill`) before or after it. */
  readonly mishaps: Mishap[];
}

export type Mishap = "none" | "busy" | "io" | "kill before" | "kill after";

export const TIMEOUT_MS = 10_000;
/** How long a hanging command outlives its runner. */
const ORPHAN_MS = 60_000;
export const POLICY: Policy = { backoff: { ...DEFAULT_BACKOFF, jitter: 0 }, onConfigError: "wait" };

/** A route that hands the transport what the world must know of a claim. */
export function route(change: Partial<Route> = {}): Route {
  return {
    fault: () => null,
    message: ({ seq, attempt, lock_token }) => ({
      argv: ["command", String(seq), String(attempt), lock_token ?? ""],
      env: {},
      stdin: new Uint8Array(),
    }),
    timeoutMs: TIMEOUT_MS,
    policy: POLICY,
    permanentExitCodes: [],
    ...change,
  };
}

export const PLAN: Plan = {
  routes: new Map(),
  fallback: route(),
  policy: POLICY,
  concurrency: 4,
  cwd: "/",
  outputLimit: 100,
  intervalMs: 30_000,
  shutdownGraceMs: 10_000,
};

export function world(): World {
  const db = memory();
  const clock = virtualClock(T0);
  const entropy = countedEntropy();
  const commands: Command[] = [];
  const script = new Map<number, Act[]>();
  let runners = 0;

  const startRunner = (mode: "once" | "forever", change: Partial<Plan> = {}): Runner => {
    const name = `desk ${(runners += 1)} 1`;
    const stop = new AbortController();
    const now = new AbortController();
    const life = new AbortController();
    const events: Event[] = [];
    const mishaps: Mishap[] = [];
    const wakers: (() => void)[] = [];
    let thaw: Promise<void> | null = null;
    /** What a dead runner waits for never comes, and what a frozen one waits for comes when it goes on. */
    const alive = async <T>(value: T): Promise<T> => {
      await thaw;
      return life.signal.aborted ? new Promise<T>(() => {}) : value;
    };
    const seams = {
      clock: {
        ...clock,
        sleep: async (ms: number, signal?: AbortSignal) => {
          await clock.sleep(ms, signal);
          return alive(undefined);
        },
      } satisfies Clock,
      transport: simulated({ db, clock, commands, script, runner: name, isAlive: () => !life.signal.aborted, alive }),
      open: () => alive(shaky(createStore(db, ":memory:", { clock, entropy }), mishaps, life, alive)),
      plan: () => ({ ...PLAN, ...change }),
      tell: (event: Event) => void events.push(event),
      holder: name,
      stop: stop.signal,
      now: now.signal,
      onWake: (wake: () => void) => void wakers.push(wake),
    };
    const ran = (mode === "once" ? runOnce : runForever)(seams);
    const killed = new Promise<null>((resolve) => {
      life.signal.addEventListener("abort", () => resolve(null));
    });
    return {
      name,
      ran,
      over: Promise.race([ran, killed]),
      events,
      stop: () => stop.abort("SIGTERM"),
      now: () => now.abort("SIGTERM"),
      kill: () => life.abort(),
      freeze: (ms) => {
        thaw = clock.sleep(ms);
      },
      wasFrozen: () => thaw !== null,
      isAlive: () => !life.signal.aborted,
      wake: () => wakers.forEach((wake) => wake()),
      mishaps,
    };
  };

  return {
    db,
    clock,
    commands,
    script,
    runner: startRunner,
    rows: () => db.query<Dispatch, []>("SELECT * FROM dispatch_outbox ORDER BY seq").all(),
    history: () => db.query<Transition, []>("SELECT * FROM status_transitions WHERE entity_type = 'dispatch' ORDER BY id").all(),
  };
}

/** A store whose exchanges go wrong as planned. */
function shaky(store: Store, mishaps: Mishap[], life: AbortController, alive: <T>(value: T) => Promise<T>): Store {
  return {
    ...store,
    close: () => Promise.resolve(), // the handle belongs to the world
    async exchange(terms) {
      const mishap = mishaps.shift() ?? "none";
      if (mishap === "kill before") life.abort();
      if (life.signal.aborted) return new Promise(() => {});
      if (mishap === "busy" || mishap === "io") throw new OutboxError(mishap, `simulated ${mishap}`);
      const exchanged = await store.exchange(terms);
      if (mishap === "kill after") life.abort();
      return alive(exchanged);
    },
  };
}

interface Stage {
  readonly db: Database;
  readonly clock: VirtualClock;
  readonly commands: Command[];
  readonly script: Map<number, Act[]>;
  readonly runner: string;
  readonly isAlive: () => boolean;
  readonly alive: <T>(value: T) => Promise<T>;
}

/** Commands that do what the script says. Each checks that it is not run inside a transaction. */
function simulated({ db, clock, commands, script, runner, isAlive, alive }: Stage): Transport {
  return {
    fault: () => null,
    async run(job: Job, kill: AbortSignal): Promise<Outcome> {
      expect(db.inTransaction).toBeFalse();
      const [, seq = 0, attempt = 0] = job.argv.map(Number);
      const act = script.get(seq)?.shift() ?? { outcome: "ok", ms: 50 };
      if (act.outcome === "fault") return { kind: "fault", error: "no interpreter" };
      if (act.outcome === "exhausted") return { kind: "released", error: "no room (EAGAIN)", exhausted: true };
      const command: Command = { seq, attempt, token: job.argv[3] ?? "", runner, startedS: clock.now(), endedS: null, orphan: false };
      commands.push(command);
      const hangs = act.outcome === "hang" || act.ms > job.timeoutMs;
      await clock.sleep(hangs ? job.timeoutMs : act.ms, kill);
      command.orphan = !isAlive();
      // A group that is ended in order may take its time. One that nobody ends goes on.
      if (hangs || kill.aborted) await clock.sleep(command.orphan ? ORPHAN_MS : kill.reason === "now" ? 10 : 2_000);
      command.endedS = clock.now();
      expect(db.inTransaction).toBeFalse();
      return alive(kill.aborted ? failed("stopped by the runner") : hangs ? failed("timed out") : told(act));
    },
  };
}

const REPORT: Report = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };

function failed(error: string, retryAfterMs: number | null = null): Outcome {
  return { kind: "failed", report: { ...REPORT, exit: 1 }, error, retryAfterMs };
}

function told(act: Act): Outcome {
  if (act.outcome === "ok") return { kind: "ok", report: REPORT };
  if (act.outcome === "reject") return { kind: "rejected", report: REPORT, error: "never" };
  return failed("exit 1", act.retryAfterMs ?? null);
}
