/** `outbox stats`: how much waits, how long, and what came of the rest. */
import { shortDuration } from "../../core/duration.ts";
import { STATUSES } from "../../core/lifecycle.ts";
import { OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { onDatabase } from "../place.ts";

export function run(args: Args, io: Io): Promise<number> {
  return onDatabase(args, io, async (store) => {
    const figures = await store.figures();
    if (args.on("json")) io.out(jsonLine(figures));
    else {
      const age = figures.oldest_due_age === 0 ? "-" : shortDuration(figures.oldest_due_age * 1_000);
      const lines = [
        ["depth", String(figures.depth)],
        ["oldest due", age],
        ...STATUSES.map((status) => [status, String(figures.status[status])] as const),
      ];
      const width = Math.max(...lines.map(([, value = ""]) => value.length));
      io.out(lines.map(([label = "", value = ""]) => `${label.padEnd(12)}${value.padStart(width)}\n`).join(""));
    }
    return OK;
  });
}
