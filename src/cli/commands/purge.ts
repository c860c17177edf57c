/** `outbox purge ID...`: messages and their history are deleted; an audit entry stays. */
import type { Io } from "../io.ts";
import { operate } from "../operator.ts";
import type { Args } from "../parse.ts";

export function run(args: Args, io: Io): Promise<number> {
  const force = args.on("force");
  return operate(args, io, {
    name: "purge",
    past: "purged",
    from: "it cannot be purged",
    apply: (store, ref, terms) => store.purge(ref, { ...terms, force }),
  });
}
