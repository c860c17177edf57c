/** `outbox retry ID...`: dead or expired messages back to pending, now or spread over time. */
import { OutboxError } from "../../core/errors.ts";
import type { Io } from "../io.ts";
import { operate } from "../operator.ts";
import type { Args } from "../parse.ts";
import { duration } from "../values.ts";

const UNIT_S = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

export function run(args: Args, io: Io): Promise<number> {
  const expiresMs = duration(args, "expires-in");
  const gapS = gapOf(args.text("rate"));
  return operate(args, io, {
    name: "retry",
    past: "put back",
    from: "only dead or expired messages can be retried",
    apply: (store, ref, terms, changed) =>
      store.retry(ref, { ...terms, dueInS: changed * gapS, expiresInS: expiresMs === undefined ? null : expiresMs / 1_000 }),
  });
}

/** Seconds between two due times at a rate such as `5/s`. @throws OutboxError `usage` */
function gapOf(rate: string | undefined): number {
  if (rate === undefined) return 0;
  const match = /^([1-9][0-9]{0,5})\/([smhd])$/.exec(rate);
  if (match === null) throw new OutboxError("usage", `--rate "${rate}" is no rate`, "write how many per s, m, h or d: 5/s");
  return UNIT_S[match[2] as keyof typeof UNIT_S] / Number(match[1]);
}
