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
import { COLUMNS } from "../../src/store/columns.ts";
import { countedEntropy, memory as emptyMemory, T0 } from "../fixtures/world.ts";
import { type VirtualClock, virtualClock } from "./time.ts";

// A store loads it when something fails. That takes turns of the event loop, and in them virtual time would go on.
await import("../../src/store/trouble.ts");

/** What a simulated command does, and how long it takes. */
export interface Act {
  /** `hang` is ended at its timeout; `stuck` cannot be ended and takes a minute. */
  readonly outcome: "ok" | "fail" | "reject" | "fault" | "exhausted" | "hang" | "stuck";
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
  /** The first database. Its rows count from 1, those of the next ones from 1001, 2001 on. */
  readonly db: Database;
  readonly databases: readonly Database[];
  readonly clock: VirtualClock;
  /** Every command that started, in order. */
  readonly commands: Command[];
  /** What the commands of a row do, one after the other; afterwards they succeed. */
  readonly script: Map<number, Act[]>;
  /** What a command does that no script names. */
  readonly acts: (row: Dispatch | null) => Act;
  /** Starts a runner. */
  runner(mode: "once" | "forever", change?: Partial<Plan>, terms?: { readonly deaf: boolean }): Runner;
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
  /** The first database fails at the next exchanges: before the commit, or it dies (`kill`) before or after it. */
  readonly mishaps: Mishap[];
  /** The same for every database. */
  readonly troubles: readonly Mishap[][];
}

/** A function is called after the commit, before the runner hears of it. */
export type Mishap = "none" | "busy" | "io" | "kill before" | "kill after" | (() => void);

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
  perDestination: 4,
  circuit: { failures: 0, cooldownS: 60 },
  retention: { deliveredS: 0, deadLetterS: 0, inboxS: 0 },
  cwd: "/",
  outputLimit: 100,
  intervalMs: 30_000,
  shutdownGraceMs: 10_000,
};

export interface WorldTerms {
  /** How many databases there are. */
  readonly databases?: number;
  readonly acts?: World["acts"];
}

export function world({ databases: count = 1, acts = () => ({ outcome: "ok", ms: 50 }) }: WorldTerms = {}): World {
  const databases = Array.from({ length: count }, (_, at) => memory(at * 1_000));
  const [db = memory(0)] = databases;
  const clock = virtualClock(T0);
  const entropy = countedEntropy();
  const commands: Command[] = [];
  const script = new Map<number, Act[]>();
  const runners: Runner[] = [];

  const startRunner: World["runner"] = (mode, change = {}, { deaf } = { deaf: false }) => {
    const name = `desk ${runners.length + 1} 1`;
    const stop = new AbortController();
    const now = new AbortController();
    const life = new AbortController();
    const events: Event[] = [];
    const troubles = databases.map((): Mishap[] => []);
    const [mishaps = []] = troubles;
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
      transport: simulated({ databases, acts, clock, commands, script, runner: name, isAlive: () => !life.signal.aborted, alive }),
      sources: databases.map((each, at) => ({
        name: at === 0 ? "default" : `source ${at + 1}`,
        path: at === 0 ? ":memory:" : `:memory ${at + 1}:`,
        open: () => {
          const store = listening(each, createStore(each, ":memory:", { clock, entropy }), deaf);
          return alive(shaky(store, troubles[at] ?? [], life, alive));
        },
      })),
      watch: () => ({ opened: () => {}, check: () => "same" as const, close: () => {} }),
      isAlive: (holder: string) => runners.some((runner) => runner.name === holder && runner.isAlive()),
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
    const runner: Runner = {
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
      troubles,
    };
    runners.push(runner);
    return runner;
  };

  return {
    db,
    databases,
    clock,
    commands,
    script,
    acts,
    runner: startRunner,
    rows: () => databases.flatMap((each) => each.query<Dispatch, []>("SELECT * FROM dispatch_outbox ORDER BY seq").all()),
    history: () => db.query<Transition, []>("SELECT * FROM status_transitions WHERE entity_type = 'dispatch' ORDER BY id").all(),
  };
}

/** A database whose rows count from `after` + 1. */
function memory(after: number): Database {
  const db = emptyMemory();
  db.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('dispatch_outbox', ?)", [after]);
  return db;
}

/** All share one handle, which cannot see its own commits as changes: what others did is counted here. */
function listening(db: Database, store: Store, deaf: boolean): Store {
  const total = (): number => db.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0;
  let own = 0;
  let seen = -1;
  const counted = async <T>(work: Promise<T>, before: number): Promise<T> => {
    const answer = await work;
    own += total() - before;
    return answer;
  };
  return {
    ...store,
    exchange: (terms) => counted(store.exchange(terms), total()),
    sweep: (windows, isAlive) => counted(store.sweep(windows, isAlive), total()),
    note: (topic, text) => counted(store.note(topic, text), total()),
    over: (topic) => counted(store.over(topic), total()),
    changed() {
      const changed = total() - own !== seen;
      seen = total() - own;
      return Promise.resolve(changed && !deaf);
    },
  };
}

/** As SQLite says it of a disk. */
const DISK = Object.assign(new Error("disk I/O error"), { name: "SQLiteError", errno: 10 });

/** A store whose exchanges go wrong as planned. */
function shaky(store: Store, mishaps: Mishap[], life: AbortController, alive: <T>(value: T) => Promise<T>): Store {
  return {
    ...store,
    close: () => Promise.resolve(), // the handle belongs to the world
    async exchange(terms) {
      const mishap = mishaps.shift() ?? "none";
      if (mishap === "kill before") life.abort();
      if (life.signal.aborted) return new Promise(() => {});
      if (mishap === "busy" || mishap === "io") throw new OutboxError(mishap, `simulated ${mishap}`, "", { cause: DISK });
      const exchanged = await store.exchange(terms);
      if (typeof mishap === "function") mishap();
      if (mishap === "kill after") life.abort();
      return alive(exchanged);
    },
  };
}

interface Stage {
  readonly databases: readonly Database[];
  readonly acts: World["acts"];
  readonly clock: VirtualClock;
  readonly commands: Command[];
  readonly script: Map<number, Act[]>;
  readonly runner: string;
  readonly isAlive: () => boolean;
  readonly alive: <T>(value: T) => Promise<T>;
}

/** Commands that do what the script says. Each checks that it is not run inside a transaction. */
function simulated({ databases, acts, clock, commands, script, runner, isAlive, alive }: Stage): Transport {
  return {
    fault: () => null,
    async run(job: Job, kill: AbortSignal, now: AbortSignal): Promise<Outcome> {
      const outside = (): void => {
        for (const db of databases) expect(db.inTransaction).toBeFalse();
      };
      outside();
      const [, seq = 0, attempt = 0] = job.argv.map(Number);
      const act = script.get(seq)?.shift() ?? acts(rowOf(databases, seq));
      if (act.outcome === "fault") return { kind: "fault", error: "no interpreter" };
      if (act.outcome === "exhausted") return { kind: "released", error: "no room (EAGAIN)", exhausted: true };
      const command: Command = { seq, attempt, token: job.argv[3] ?? "", runner, startedS: clock.now(), endedS: null, orphan: false };
      commands.push(command);
      const hangs = act.outcome === "hang" || act.ms > job.timeoutMs;
      if (act.outcome === "stuck") await clock.sleep(60_000);
      await clock.sleep(hangs ? job.timeoutMs : act.ms, kill);
      command.orphan = !isAlive();
      // A group that is ended in order may take its time. One that nobody ends goes on.
      if (hangs || kill.aborted) await (command.orphan ? clock.sleep(ORPHAN_MS) : clock.sleep(2_000, now));
      command.endedS = clock.now();
      outside();
      return alive(kill.aborted ? failed("stopped by the runner") : hangs ? failed("timed out") : told(act));
    },
  };
}

function rowOf(databases: readonly Database[], seq: number): Dispatch | null {
  for (const db of databases) {
    const row = db.query<Dispatch, [number]>(`SELECT ${COLUMNS} FROM dispatch_outbox WHERE seq = ?`).get(seq);
    if (row !== null) return row;
  }
  return null;
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
