/** `outbox help [COMMAND]`: the same as `--help`. */
import { COMMANDS } from "../command.ts";
import { OK } from "../exit.ts";
import { commandHelp, overview } from "../help.ts";
import type { Io } from "../io.ts";
import { type Args, findCommand } from "../parse.ts";
import type { CommandSpec } from "../spec.ts";

export function run(args: Args, io: Io): Promise<number> {
  const name = args.words.join(" ");
  const terminal = io.terminal();
  io.out(name === "" ? overview(terminal) : commandHelp(commandOf(name), terminal));
  return Promise.resolve(OK);
}

/** Half of a name is enough: `inbox` for `inbox run`. */
function commandOf(name: string): CommandSpec {
  return COMMANDS.find((command) => command.name.startsWith(`${name} `)) ?? findCommand(name, COMMANDS);
}
