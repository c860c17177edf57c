/** `outbox resume`: the hold that names exactly this ends, or every one. */
import { exitCode, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { count, escapeControls, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { onDatabase } from "../place.ts";
import { inWords, isSameScope, nothingNamed, scopeOf } from "../scope.ts";

export function run(args: Args, io: Io): Promise<number> {
  const scope = scopeOf(args);
  if (scope === null) throw nothingNamed("resume");
  const all = args.on("all");
  const isDry = args.on("dry-run");
  return onDatabase(args, io, async (store) => {
    const ended = isDry
      ? (await store.holds()).filter((hold) => all || isSameScope(hold, scope)).length
      : await store.resume(all ? "all" : scope, { actor: `uid ${io.uid}` });
    if (ended === 0) {
      const what = all ? "nothing is held" : `there is no hold on exactly ${inWords(scope)}; outbox hold lists what is held`;
      io.err(escapeControls(`outbox: nothing to resume: ${what}`));
    }
    const tally = { changed: ended, refused: ended === 0 && !all ? 1 : 0 };
    io.out(args.on("json") ? jsonLine(tally) : `${count(ended, "hold")} ${isDry ? "would be " : ""}ended\n`);
    return ended === 0 ? exitCode("no") : OK;
  });
}
