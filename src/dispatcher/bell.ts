/** Wakes a sleeper: rung from anywhere, any number of times, one wake. */
import type { Clock } from "../core/seams.ts";

export interface Bell {
  readonly ring: () => void;
  /** Resolves when rung since the last wait, or after `ms`. */
  readonly wait: (ms: number) => Promise<void>;
}

export function bell(clock: Clock): Bell {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    async wait(ms) {
      await clock.sleep(ms, rung.signal);
      rung = new AbortController();
    },
  };
}
