/** One moment on both clocks: rests and pauses are counted on the monotonic one, due times on the wall clock. */
import type { Clock } from "../core/seams.ts";

export interface Instant {
  /** Milliseconds of the monotonic clock. */
  readonly ms: number;
  /** Epoch seconds. */
  readonly s: number;
}

/** Now. */
export function instant(clock: Clock): Instant {
  return { ms: clock.monotonicMs(), s: clock.now() };
}
