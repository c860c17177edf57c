/** Virtual time: nothing waits, sleeping moves the clock. Seconds of work of a runner take milliseconds. */
import type { Clock } from "../../src/core/seams.ts";

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

export interface VirtualClock extends Clock {
  /** Sets the wall clock forward or back, by seconds; the monotonic one goes on. */
  step(seconds: number): void;
  /** Time that goes by while code runs, in milliseconds. Nobody is woken by it. */
  pass(ms: number): void;
  /** Runs something at a moment, in milliseconds from the beginning. */
  at(ms: number, action: () => void): void;
  /** Lets time pass until the work is done. Fails when nothing waits for time any more and the work goes on for ever. */
  until<T>(work: Promise<T>): Promise<T>;
  /** How often a sleeper was woken: what a runner that is idle must keep low. */
  wakes(): number;
}

/** @param start epoch seconds */
export function virtualClock(start: number): VirtualClock {
  let nowMs = 0;
  let stepS = 0;
  let wakes = 0;
  const sleepers: Sleeper[] = [];

  /** Among equal moments the one that was asked for first. */
  const fire = (): boolean => {
    const first = sleepers.reduce<Sleeper | null>((least, next) => (least === null || next.atMs < least.atMs ? next : least), null);
    if (first === null) return false;
    sleepers.splice(sleepers.indexOf(first), 1);
    nowMs = Math.max(nowMs, first.atMs);
    wakes += 1;
    first.wake();
    return true;
  };
  const sleepUntil = (atMs: number, wake: () => void): Sleeper => {
    const sleeper = { atMs, wake };
    sleepers.push(sleeper);
    return sleeper;
  };

  return {
    now: () => start + stepS + Math.round(nowMs) / 1_000,
    monotonicMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) return resolve();
        const sleeper = sleepUntil(nowMs + Math.max(0, ms), resolve);
        signal?.addEventListener("abort", () => {
          const index = sleepers.indexOf(sleeper);
          if (index !== -1) sleepers.splice(index, 1);
          resolve();
        });
      }),
    step: (seconds) => {
      stepS += seconds;
    },
    pass: (ms) => {
      nowMs += ms;
    },
    at: (ms, action) => void sleepUntil(ms, action),
    async until(work) {
      let done = false;
      const end = (): void => {
        done = true;
      };
      work.then(end, end);
      for (;;) {
        // Everything that does not wait for time is done before the next turn of the event loop.
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
        if (done) return work;
        if (!fire()) throw new Error("nothing waits for time any more, and the work is not done");
      }
    },
    wakes: () => wakes,
  };
}
