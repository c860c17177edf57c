/** A process of the world. All that it waits for passes through here, so it can die, or stand still, at any await. */
import type { Clock } from "../../../src/core/seams.ts";
import type { VirtualClock } from "../time.ts";
import type { Mishap } from "./words.ts";

export interface Process {
  /** As the database has it: host, pid, start time. */
  readonly name: string;
  readonly clock: Clock;
  /** The world's, or nothing ever again. */
  cross<T>(value: T): Promise<T>;
  isAlive(): boolean;
  /** SIGKILL: every object of it is lost, the database stays. */
  kill(): void;
  /** SIGKILL at its n-th await from now on. */
  doom(crossings: number): void;
  /** SIGSTOP, and SIGCONT so many milliseconds later. */
  freeze(ms: number): void;
  /** It has come to its own end. */
  end(): void;
  /** Resolves when it is killed. */
  readonly killed: Promise<null>;
  /** What becomes of its next transactions. */
  readonly mishaps: Mishap[];
  /** It was frozen or cut off from its database. */
  troubled(): void;
  /** When that was last so, in milliseconds of the monotonic clock; -1: never. */
  troubledAtMs(): number;
  /** Each look at the clock takes so long. */
  lookMs: number;
  /** The locks of claims that it made. */
  readonly tokens: Set<string>;
  /** It is a program with the library, no runner. */
  readonly isProgram: boolean;
  /** Its two signals. */
  readonly stop: AbortController;
  readonly now: AbortController;
}

export interface ProcessTerms {
  readonly pid: number;
  readonly isProgram: boolean;
  /** It does one thing after another and no time goes by. */
  readonly spins: () => void;
}

/** More awaits than any process needs within one moment. */
const SPINS = 5_000;

export function startProcess(clock: VirtualClock, { pid, isProgram, spins }: ProcessTerms): Process {
  let fate: "alive" | "killed" | "ended" = "alive";
  let crossingsLeft = Number.POSITIVE_INFINITY;
  let thawsAtMs = 0;
  let crossedAtMs = 0;
  let crossedSince = 0;
  let troubledAtMs = -1;
  const isThere = (): boolean => fate !== "killed";
  const death = Promise.withResolvers<null>();
  const never = <T>(): Promise<T> => new Promise(() => {});
  const process: Process = {
    name: `desk ${pid} 1`,
    clock: {
      now: () => {
        clock.pass(process.lookMs);
        return clock.now();
      },
      monotonicMs: () => clock.monotonicMs(),
      sleep: async (ms, signal) => {
        await clock.sleep(ms, signal);
        return process.cross(undefined);
      },
    },
    async cross(value) {
      crossingsLeft -= 1;
      if (crossingsLeft <= 0) process.kill();
      crossedSince = clock.monotonicMs() === crossedAtMs ? crossedSince + 1 : 0;
      crossedAtMs = clock.monotonicMs();
      if (crossedSince > SPINS) {
        spins();
        process.kill();
      }
      while (isThere() && clock.monotonicMs() < thawsAtMs) await clock.sleep(thawsAtMs - clock.monotonicMs());
      return isThere() ? value : never();
    },
    isAlive: () => fate === "alive",
    kill() {
      if (fate !== "alive") return;
      fate = "killed";
      death.resolve(null);
    },
    doom: (crossings) => {
      crossingsLeft = crossings;
    },
    freeze(ms) {
      thawsAtMs = clock.monotonicMs() + ms;
      troubledAtMs = Math.max(troubledAtMs, thawsAtMs);
    },
    end: () => {
      if (fate === "alive") fate = "ended";
    },
    killed: death.promise,
    mishaps: [],
    troubled: () => {
      troubledAtMs = Math.max(troubledAtMs, clock.monotonicMs());
    },
    troubledAtMs: () => troubledAtMs,
    lookMs: 0,
    tokens: new Set(),
    isProgram,
    stop: new AbortController(),
    now: new AbortController(),
  };
  return process;
}
