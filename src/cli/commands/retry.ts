/** `outbox retry`: dead or expired messages back to pending, now or spread over time. */
import type { Io } from "../io.ts";
import { operate } from "../operator.ts";
import type { Args } from "../parse.ts";
import { duration, rate } from "../values.ts";

export function run(args: Args, io: Io): Promise<number> {
  const expiresMs = duration(args, "expires-in");
  const expiresInS = expiresMs === undefined ? null : expiresMs / 1_000;
  const gapS = rate(args, "rate") ?? 0;
  return operate(args, io, {
    name: "retry",
    past: "put back",
    from: "only dead or expired messages can be retried",
    gapS,
    apply: (store, ref, terms, changed) => store.retry(ref, { ...terms, dueInS: changed * gapS, expiresInS }),
    change: { verb: "retry", gapS, expiresInS },
  });
}
