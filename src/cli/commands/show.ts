/** `outbox show ID...`: everything that is known of a dispatch. The token too: it is the user's own (ADR-0059 D5). */
import { parseRef } from "../../core/dispatch.ts";
import { exitCode, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { escapeControls, jsonLine, shortened } from "../output.ts";
import type { Args } from "../parse.ts";
import { onDatabase } from "../place.ts";
import { portrait } from "../portrait.ts";
import { dispatchJson } from "../rows.ts";

export function run(args: Args, io: Io): Promise<number> {
  return onDatabase(args, io, async (store) => {
    let code = OK;
    let shown = 0;
    for (const word of args.words) {
      const ref = parseRef(word);
      const found = ref === null ? null : await store.find(ref);
      if (found === null) {
        io.err(escapeControls(`outbox: there is no message ${shortened(word)}`));
        code = exitCode("no");
      } else if (args.on("json")) io.out(jsonLine(dispatchJson(found.row, found.history, found.audit)));
      else io.out(`${shown === 0 ? "" : "\n"}${portrait(found, { now: io.clock.now(), zone: io.zone, terminal: io.terminal() })}`);
      shown += found === null ? 0 : 1;
    }
    return code;
  });
}
