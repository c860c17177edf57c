/** `outbox purge`: messages and their history are deleted; an audit entry stays. */
import type { Io } from "../io.ts";
import { operate } from "../operator.ts";
import type { Args } from "../parse.ts";

export function run(args: Args, io: Io): Promise<number> {
  const force = args.on("force");
  return operate(args, io, {
    name: "purge",
    past: "purged",
    from: "it cannot be purged",
    gapS: 0,
    apply: (store, ref, terms) => store.purge(ref, { ...terms, force }),
    change: { verb: "purge", force },
  });
}
