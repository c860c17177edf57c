/** From argv to exit code. Every error ends here, as one line on stderr and a code of the closed set. */
import { OutboxError } from "../core/errors.ts";
import { COMMON } from "./flags.ts";
import { exitCode, OK } from "./exit.ts";
import { type Io, StdoutClosed } from "./io.ts";
import { complaint } from "./output.ts";
import { parse } from "./parse.ts";
import type { CommandSpec } from "./spec.ts";
import { HAND_IN } from "./table/hand_in.ts";

/**
 * Runs one command line. Never rejects.
 * @returns the exit code
 */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    // A list whose reader has seen enough: that is no trouble. Where it is, the command itself says so.
    if (error instanceof StdoutClosed) return OK;
    io.err(complaint(error));
    return exitCode(error instanceof OutboxError ? error.kind : "bug");
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const asked = parse(argv, { commands: await commandsFor(argv[0]), common: COMMON });
  switch (asked.what) {
    case "run":
      return (await asked.command.load()).run(asked.args, io);
    case "help": {
      const { commandHelp, overview } = await import("./help.ts");
      const terminal = io.terminal();
      io.out(asked.command === null ? overview(terminal) : commandHelp(asked.command, terminal));
      return OK;
    }
    case "version": {
      const { VERSION } = await import("./version.ts");
      io.out(`outbox ${VERSION}\n`);
      return OK;
    }
    case "nothing": {
      const { overview } = await import("./help.ts");
      io.err(overview({ columns: null, color: false }).trimEnd());
      return exitCode("usage");
    }
    default:
      return asked satisfies never;
  }
}

/** The commands that hand in must be quick, and are found in their own group of the table; the rest of it is loaded for the others. */
async function commandsFor(word: string | undefined): Promise<readonly CommandSpec[]> {
  if (HAND_IN.some(({ name }) => name === word)) return HAND_IN;
  const { COMMANDS } = await import("./command.ts");
  return COMMANDS;
}
