/** What `retry`, `cancel` and `purge` share: do all that can be done, a sentence for each refusal, then the count. */
import { type DispatchRef, parseRef } from "../core/dispatch.ts";
import type { OperatorOutcome, OperatorTerms, Store } from "../store/store.ts";
import { exitCode, OK } from "./exit.ts";
import type { Io } from "./io.ts";
import { count, escapeControls, jsonLine, shortened } from "./output.ts";
import type { Args } from "./parse.ts";
import { onDatabase } from "./place.ts";

export interface Verb {
  /** As in "cannot cancel 417". */
  readonly name: string;
  /** As in "2 messages cancelled". */
  readonly past: string;
  /** What to say of a row in a status from which this cannot be done. */
  readonly from: string;
  /** `changed`: how many were changed before this one. */
  apply(store: Store, ref: DispatchRef, terms: OperatorTerms, changed: number): Promise<OperatorOutcome>;
}

/** Applies a verb to each ID. One message named twice is one message. */
export function operate(args: Args, io: Io, verb: Verb): Promise<number> {
  return onDatabase(args, io, async (store) => {
    const terms = { actor: `uid ${io.uid}`, dryRun: args.on("dry-run") };
    const tally = { changed: 0, refused: 0 };
    /** Under both its names, what was changed or refused. */
    const done = new Set<string | number>();
    for (const word of new Set(args.words)) {
      const ref = parseRef(word);
      if (ref !== null && done.has("id" in ref ? ref.id : ref.seq)) continue;
      const result: OperatorOutcome = ref === null ? { outcome: "not_found" } : await verb.apply(store, ref, terms, tally.changed);
      if (result.outcome !== "not_found") done.add(result.row.seq).add(result.row.id);
      if (result.outcome === "changed") {
        tally.changed += 1;
      } else {
        tally.refused += 1;
        io.err(escapeControls(`outbox: cannot ${verb.name} ${shortened(word)}: ${refusal(result, verb)}`));
      }
    }
    io.out(args.on("json") ? jsonLine(tally) : `${count(tally.changed, "message")} ${terms.dryRun ? "would be " : ""}${verb.past}\n`);
    return tally.refused > 0 ? exitCode("no") : OK;
  });
}

function refusal(result: Exclude<OperatorOutcome, { outcome: "changed" }>, verb: Verb): string {
  switch (result.outcome) {
    case "not_found":
      return "there is no such message";
    case "wrong_status":
      return `it is ${result.row.status}; ${verb.from}`;
    case "live":
      return verb.name === "purge" ? "its command is running; wait, or use --force" : "its command is running; wait for it";
    case "past_expiry":
      return "its expiry has passed; give a new one with --expires-in";
    case "expires_first":
      return "it would expire before it is due; give a later expiry with --expires-in, or a faster --rate";
    default:
      return result satisfies never;
  }
}
