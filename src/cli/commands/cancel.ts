/** `outbox cancel`: messages that wait, or whose runner vanished, end as expired. */
import type { Io } from "../io.ts";
import { operate } from "../operator.ts";
import type { Args } from "../parse.ts";

export function run(args: Args, io: Io): Promise<number> {
  return operate(args, io, {
    name: "cancel",
    past: "cancelled",
    from: "only messages that wait can be cancelled",
    gapS: 0,
    apply: (store, ref, terms) => store.cancel(ref, terms),
    change: { verb: "cancel" },
  });
}
