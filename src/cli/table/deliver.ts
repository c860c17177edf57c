/** The command that delivers. Only data. */
import { NETWORK_FS } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Deliver";

const run: CommandSpec = {
  name: "run",
  group: GROUP,
  summary: "Deliver what is due: for ever, or once",
  usage: "run [--once] [--dry-run]",
  about: [
    "Runs your command for each message that is due and records what came of it. Runners may overlap; a message has one at a time. SIGTERM and SIGINT let running commands finish.",
    "--dry-run only reads, also beside a runner: it lists what would be sent or ended if every command succeeded, and exits as --once would; where there is no database it makes none, exit 1.",
  ],
  words: [],
  flags: {
    once: { kind: "boolean", about: "Deliver what is due now, then exit" },
    "dry-run": { kind: "boolean", about: "Say what --once would send or end now, change nothing" },
    json: { kind: "boolean", about: "With --once: print the counts as JSON; with --dry-run: one object a message" },
    ...NETWORK_FS,
  },
  examples: [
    { line: "outbox run", about: "As a service" },
    { line: "outbox run --once", about: "From cron, each minute" },
    { line: "outbox run --dry-run", about: "What would go out now, and what keeps the rest" },
  ],
  exits: [1, 65, 74, 75, 77, 78, 130, 143],
  load: () => import("../commands/run.ts"),
};

export const DELIVER: readonly CommandSpec[] = [run];
