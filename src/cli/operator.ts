/** What `retry`, `cancel` and `purge` share: do all that can be done, a sentence for what was refused, then the count. */
import { type DispatchRef, parseRef } from "../core/dispatch.ts";
import type { OperatorOutcome, Store } from "../store/store.ts";
import { exitCode, OK } from "./exit.ts";
import type { Io } from "./io.ts";
import { byFilter } from "./by_filter.ts";
import { escapeControls, shortened } from "./output.ts";
import type { Args } from "./parse.ts";
import { onDatabase } from "./place.ts";
import { targetOf } from "./selection.ts";
import { tell, type Verb } from "./verb.ts";

/** Applies a verb to each ID, or to all that a filter names. */
export function operate(args: Args, io: Io, verb: Verb): Promise<number> {
  const target = targetOf(args, io, verb.name);
  return target.by === "filter" ? byFilter(args, io, verb, target.selection) : byIds(args, io, verb);
}

/** One message named twice is one message. */
function byIds(args: Args, io: Io, verb: Verb): Promise<number> {
  return onDatabase(args, io, async (store) => {
    const terms = { actor: `uid ${io.uid}`, dryRun: args.on("dry-run") };
    const tally = { changed: 0, refused: 0 };
    let lastDueAt: number | null = null;
    /** Under both its names, what was changed or refused. */
    const done = new Set<string | number>();
    for (const { word, ref } of await inOrder(args.words, store, verb)) {
      if (ref !== null && done.has("id" in ref ? ref.id : ref.seq)) continue;
      const result: OperatorOutcome = ref === null ? { outcome: "not_found" } : await verb.apply(store, ref, terms, tally.changed);
      if (result.outcome !== "not_found") done.add(result.row.seq).add(result.row.id);
      if (result.outcome === "changed") {
        if (verb.gapS > 0) lastDueAt = io.clock.now() + tally.changed * verb.gapS;
        tally.changed += 1;
      } else {
        tally.refused += 1;
        io.err(escapeControls(`outbox: cannot ${verb.name} ${shortened(word)}: ${refusal(result, verb)}`));
      }
    }
    tell(args, io, verb, { ...tally, lastDueAt });
    return tally.refused > 0 ? exitCode("no") : OK;
  });
}

interface Named {
  readonly word: string;
  readonly ref: DispatchRef | null;
}

/** As they were named; where their due times are spread, the oldest first. */
async function inOrder(words: readonly string[], store: Store, verb: Verb): Promise<readonly Named[]> {
  const named = [...new Set(words)].map((word) => ({ word, ref: parseRef(word) }));
  if (verb.gapS === 0) return named;
  const placed: (Named & { readonly seq: number })[] = [];
  for (const each of named) {
    const found = each.ref === null ? null : await verb.apply(store, each.ref, { actor: "", dryRun: true }, 0);
    placed.push({ ...each, seq: found === null || found.outcome === "not_found" ? 0 : found.row.seq });
  }
  return placed.toSorted((one, other) => one.seq - other.seq);
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
