/** `outbox help [COMMAND]`: the same as `--help`. */
import { COMMANDS } from "../command.ts";
import { OK } from "../exit.ts";
import { commandHelp, overview } from "../help.ts";
import type { Io } from "../io.ts";
import { type Args, findCommand } from "../parse.ts";

export function run(args: Args, io: Io): Promise<number> {
  const [name] = args.words;
  const terminal = io.terminal();
  io.out(name === undefined ? overview(terminal) : commandHelp(findCommand(name, COMMANDS), terminal));
  return Promise.resolve(OK);
}
