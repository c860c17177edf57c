/** Commands that look and change nothing. Only data. */
import { FILTERS, IDS, JSON_FLAG } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Look";
const LIMITS = "Limits of --check";

const ls: CommandSpec = {
  name: "ls",
  group: GROUP,
  summary: "List messages, newest first",
  usage: "ls [filters] [--limit N] [--after ID]",
  about: ["A filter may be given several times: any of its values matches. All filters that are given must match."],
  words: [],
  flags: {
    ...FILTERS,
    limit: { kind: "string", value: "N", about: "At most this many (50); 0 for all" },
    after: { kind: "string", value: "ID", about: "Go on after this one: the next page" },
    oldest: { kind: "boolean", about: "Oldest first" },
    ...JSON_FLAG,
  },
  examples: [
    { line: "outbox ls --status dead_letter --since 1d", about: "What died since yesterday" },
    { line: "outbox ls --to me --limit 0 --json | jq .id", about: "Every id for one destination" },
  ],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/ls.ts"),
};

const show: CommandSpec = {
  name: "show",
  group: GROUP,
  summary: "Show messages whole: envelope, attempts, history",
  usage: "show ID...",
  words: [IDS],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox show 417", about: "By the number that ls prints" }],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/show.ts"),
};

const stats: CommandSpec = {
  name: "stats",
  group: GROUP,
  summary: "Count what waits, what came of the rest, what is stopped",
  usage: "stats [--json | --prometheus | --check [limits]]",
  about: [
    "Of every database in the settings, unless one is named. One that cannot be read is left out and told, exit 74.",
    "--check says nothing while no limit is passed, else one line for each, exit 1. Held messages are due too. Without a limit it takes --max-age 15m.",
  ],
  words: [],
  flags: {
    ...JSON_FLAG,
    prometheus: { kind: "boolean", about: "In the text format of Prometheus, for node_exporter's textfile directory" },
    check: { kind: "boolean", about: "Say only which limits are passed" },
    "max-age": { kind: "string", value: "D", about: "Nothing has been due for longer", group: LIMITS },
    "max-dead": { kind: "string", value: "N", about: "No more dead letters than these", group: LIMITS },
    "max-pending": { kind: "string", value: "N", about: "No more unfinished messages than these", group: LIMITS },
  },
  excludes: [["json", "prometheus", "check"]],
  examples: [
    { line: "outbox stats --json", about: "Depth, oldest due age, rows by status, dead letters by reason" },
    { line: "outbox stats --check --max-age 1h --max-dead 0", about: "For cron: silent as long as all is well" },
  ],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/stats.ts"),
};

export const LOOK: readonly CommandSpec[] = [ls, show, stats];
