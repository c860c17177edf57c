/** `outbox help [COMMAND]`: the same as `--help`. */
import { COMMANDS } from "../command.ts";
import { OK } from "../exit.ts";
import { commandHelp, overview } from "../help.ts";
import type { Io } from "../io.ts";
import { type Args, findCommand } from "../parse.ts";

export function run(args: Args, io: Io): Promise<number> {
  const [name] = args.words;
  const { color } = io.terminal();
  io.out(name === undefined ? overview(color) : commandHelp(findCommand(name, COMMANDS), color));
  return Promise.resolve(OK);
}
