/** What `retry`, `cancel` and `purge` are to the code that they share, and how each tells what it did. */
import type { DispatchRef } from "../core/dispatch.ts";
import { formatTime } from "../core/time.ts";
import type { ManyTerms, OperatorOutcome, OperatorTerms, Store } from "../store/store.ts";
import type { Io } from "./io.ts";
import { count, jsonLine, relative } from "./output.ts";
import type { Args } from "./parse.ts";

export interface Verb {
  /** As in "cannot cancel 417". */
  readonly name: "retry" | "cancel" | "purge";
  /** As in "2 messages cancelled". */
  readonly past: string;
  /** What to say of a row in a status from which this cannot be done. */
  readonly from: string;
  /** Seconds between two due times; 0: they are not spread. */
  readonly gapS: number;
  /** `changed`: how many were changed before this one. */
  apply(store: Store, ref: DispatchRef, terms: OperatorTerms, changed: number): Promise<OperatorOutcome>;
  /** The same of all that a filter names. */
  readonly change: ManyTerms["change"];
}

export interface Told {
  readonly changed: number;
  readonly refused: number;
  /** When the last of them is due, epoch seconds; null: they are not spread. */
  readonly lastDueAt: number | null;
}

/** The count, and until when what was put back is spread. */
export function tell(args: Args, io: Io, verb: Verb, { changed, refused, lastDueAt }: Told): void {
  if (args.on("json")) return io.out(jsonLine({ changed, refused }));
  const spread =
    lastDueAt === null || changed < 2
      ? ""
      : `, one after the other until ${formatTime(lastDueAt, io.zone)} (${relative(lastDueAt, io.clock.now())})`;
  io.out(`${count(changed, "message")} ${args.on("dry-run") ? "would be " : ""}${verb.past}${spread}\n`);
}
