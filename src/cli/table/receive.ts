/** The command for those who receive messages. Only data. */
import type { CommandSpec } from "../spec.ts";

const inboxRun: CommandSpec = {
  name: "inbox run",
  group: "Receive",
  summary: "Run a command once for each message, however often it comes",
  usage: "inbox run [ID] [--consumer NAME] -- CMD...",
  about: [
    "Runs CMD unless its success is recorded for this message and consumer: then it does nothing and exits 0. CMD has our streams, terminal and environment. Exit 0 of it is recorded; after anything else the next call runs it again. While another process works at the message, exit 75.",
    "The exit code is that of CMD: also 128 and the number of a signal that ended it, 127 when there is no such command, 126 when it cannot be executed.",
    "The record follows the work. Killed between the two, or when the record cannot be written (74), CMD runs again at the next call.",
  ],
  words: [{ name: "ID", about: "32 hex digits, or the number that ls prints; $OUTBOX_ID unless given", min: 0, max: 1 }],
  rest: { name: "CMD", about: "A command and its arguments: everything after --" },
  flags: {
    consumer: {
      kind: "string",
      value: "NAME",
      about: "Whose success counts: each consumer handles each message once; default unless given",
    },
  },
  examples: [
    { line: "outbox inbox run -- ./charge-card", about: "Within a delivered command: never charge twice" },
    { line: "outbox inbox run 417 --consumer audit -- sh -c 'date >> audit.log'", about: "By hand, for a consumer of its own" },
  ],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/inbox_run.ts"),
};

export const RECEIVE: readonly CommandSpec[] = [inboxRun];
