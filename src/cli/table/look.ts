/** Commands that look and change nothing. Only data. */
import { FILTERS, IDS, JSON_FLAG } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Look";

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
  exits: [1, 74, 75, 77, 78],
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
  exits: [1, 74, 75, 77, 78],
  load: () => import("../commands/show.ts"),
};

const stats: CommandSpec = {
  name: "stats",
  group: GROUP,
  summary: "Count what waits, what came of the rest, what is stopped",
  usage: "stats [--json]",
  about: ["Of every database in the settings, unless one is named. One that cannot be read is left out and told, exit 74."],
  words: [],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox stats --json", about: "Depth, oldest due age, rows by status" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("../commands/stats.ts"),
};

export const LOOK: readonly CommandSpec[] = [ls, show, stats];
