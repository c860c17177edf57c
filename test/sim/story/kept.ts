/** Stories that once went wrong, by what must hold in them. */
import type { Story } from "./words.ts";

export const KEPT: Readonly<Record<string, Story>> = {
  "a runner that waits for a clock that was set back lets other rows go first": {
    runners: 0,
    steps: [
      {
        afterMs: 0,
        deed: { do: "enqueue", letter: { kind: "ping", to: "seat", max: 1, acts: [{ outcome: "never", ms: 0 }] }, mishap: "none" },
      },
      { afterMs: 0, deed: { do: "run", mode: "forever" } },
      { afterMs: 50, deed: { do: "clock", seconds: -3600 } },
      { afterMs: 1_000, deed: { do: "enqueue", letter: { kind: "ping", to: "seat", max: 1 }, mishap: "none" } },
    ],
    pauseMs: 0,
    ending: "once",
  },
};
