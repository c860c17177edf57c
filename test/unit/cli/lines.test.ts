/** Command lines that nobody would write: the parser answers each with a decision or a usage error, never with anything else. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { COMMANDS } from "../../../src/cli/command.ts";
import { COMMON } from "../../../src/cli/flags.ts";
import { parse } from "../../../src/cli/parse.ts";
import type { CommandSpec } from "../../../src/cli/spec.ts";
import { OutboxError } from "../../../src/core/errors.ts";
import { lines } from "../../fixtures/cli/lines.ts";

type Parser = typeof parse;

/** What is wrong with the answer of a parser to this line; null when nothing is. */
function flaw(argv: readonly string[], parser: Parser): string | null {
  try {
    const parsed = parser(argv, { commands: COMMANDS, common: COMMON });
    return parsed.what === "run" ? readAll(parsed.command, parsed.args) : null;
  } catch (error) {
    if (!(error instanceof OutboxError)) return `threw ${String(error)}`;
    if (error.kind !== "usage") return `answered ${error.kind}`;
    return error.message === "" || error.hint === "" ? "said nothing" : null;
  }
}

/** Every flag of the command can be asked for; a value that must not be empty is not. */
function readAll(command: CommandSpec, args: Extract<ReturnType<Parser>, { what: "run" }>["args"]): string | null {
  for (const [name, flag] of Object.entries({ ...COMMON, ...command.flags })) {
    if (flag.kind === "boolean") args.on(name);
    else
      for (const text of flag.kind === "list" ? args.list(name) : [args.text(name)])
        if (text === "" && flag.mayBeEmpty !== true) return `--${name} is empty`;
  }
  const most = command.words.reduce((sum, word) => sum + word.max, 0);
  return args.words.length > most ? "more words than the command takes" : null;
}

test("the parser takes a line or refuses it in a sentence", () => {
  const came = { taken: 0, refused: 0 };
  fc.assert(
    fc.property(lines, (argv) => {
      expect(flaw(argv, parse)).toBeNull();
      try {
        parse(argv, { commands: COMMANDS, common: COMMON });
        came.taken += 1;
      } catch {
        came.refused += 1;
      }
    }),
    { numRuns: 3_000, interruptAfterTimeLimit: 5_000 },
  );
  // Lines of both sorts were among them.
  expect(Math.min(came.taken, came.refused)).toBeGreaterThan(50);
});

test.each([
  [
    "looks a name up as JavaScript does",
    (argv) =>
      argv.some((word) => word.includes("__proto__")) ? (undefined as never) : parse(argv, { commands: COMMANDS, common: COMMON }),
  ],
  [
    "counts no words",
    (argv, table) => {
      const parsed = parse(argv, table);
      if (parsed.what !== "run") return parsed;
      const { args } = parsed;
      const text = (flag: string) => args.text(flag);
      return { ...parsed, args: { words: argv, rest: args.rest, text, list: (flag) => args.list(flag), on: (flag) => args.on(flag) } };
    },
  ],
  [
    "forgets which kind its trouble is",
    (argv, table) => {
      try {
        return parse(argv, table);
      } catch (error) {
        throw error instanceof OutboxError ? new OutboxError("data", error.message, error.hint) : error;
      }
    },
  ],
] as const satisfies readonly (readonly [string, Parser])[])("a parser that %s is found out", (_, broken: Parser) => {
  expect(
    fc.check(
      fc.property(lines, (argv) => flaw(argv, broken) === null),
      { numRuns: 3_000 },
    ).failed,
  ).toBeTrue();
});
