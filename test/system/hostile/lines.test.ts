/** Random command lines through the built program: whatever they are, it ends with a code of the closed set, a sentence and no trace. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { COMMANDS } from "../../../src/cli/command.ts";
import { EXIT_CODES } from "../../../src/cli/exit.ts";
import { COMMON } from "../../../src/cli/flags.ts";
import { parse } from "../../../src/cli/parse.ts";
import { CONTROLS } from "../../../src/core/visible.ts";
import { Workstation } from "../../cli/running.ts";
import { lines } from "../../fixtures/cli/lines.ts";
import { TRACE } from "../../hostile/cases.ts";

/** Printed, so that lines that failed can be had again. */
const seed = Math.trunc(Math.random() * 2 ** 31);
const LINES = fc.sample(lines.filter(ends), { numRuns: 60, seed });

/** Whether it is more than a slip, and comes to an end by itself. */
function ends(argv: readonly string[]): boolean {
  try {
    const parsed = parse(argv, { commands: COMMANDS, common: COMMON });
    return parsed.what === "run" && (parsed.command.name !== "run" || parsed.args.on("once"));
  } catch {
    return argv.length % 4 === 0; // some of those that the parser refuses: it has its own test
  }
}

test(`60 random lines, seed ${seed}`, async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: ["/bin/true"] } });
  await place.enqueue({}, { ack_required: true }, { dedup_key: "k" });
  for (const argv of LINES) {
    const { code, stdout, stderr } = await place.start(argv);
    const said = { argv, code, stderr: stderr.slice(0, 500) };
    expect([...EXIT_CODES.map((each) => each.code), ...(argv[0] === "inbox" ? [126, 127] : [])], JSON.stringify(said)).toContain(
      code ?? -1,
    );
    expect([code === 70, TRACE.test(stderr)], JSON.stringify(said)).toEqual([false, false]);
    for (const text of [stdout, stderr]) expect(text.replaceAll("\n", "").match(CONTROLS), JSON.stringify(said)).toBeNull();
    if (code !== 0 && stdout === "") expect(stderr, JSON.stringify(said)).toMatch(/^(outbox: [^\n]+\n)+$/);
  }
});
