/**
 * The one definition of commands and flags. The parser obeys it, help prints it, the documentation is made from it. Only
 * data: what a command does is loaded when it runs.
 */
import { DRY_RUN, FILTERS, IDS, JSON_FLAG, NETWORK_FS, WHEN } from "./flags.ts";
import type { CommandSpec } from "./spec.ts";

const HAND_IN = "Hand in";
const DELIVER = "Deliver";
const LOOK = "Look";
const STEP_IN = "Step in";
const SET_UP = "Set up";

const enqueue: CommandSpec = {
  name: "enqueue",
  group: HAND_IN,
  summary: "Commit one message, or a batch, for delivery",
  usage: "enqueue --kind KIND --to DEST [flags]",
  about: [
    "Prints the id once the message is safe on disk. With a deduplication key that is already known, prints the id of the first message and changes nothing.",
  ],
  words: [],
  flags: {
    kind: { kind: "string", value: "KIND", about: "What it is about; selects a route", group: "Message" },
    to: { kind: "string", value: "DEST", about: "Where it goes; handed to your command as it is", group: "Message" },
    body: { kind: "string", value: "JSON", about: "Body, a JSON object", group: "Message" },
    "body-file": { kind: "string", value: "FILE", about: "Body from a file, - for stdin", group: "Message" },
    text: { kind: "string", value: "TEXT", about: 'Body {"text": TEXT}', group: "Message", mayBeEmpty: true },
    "text-file": { kind: "string", value: "FILE", about: "The same from a file, - for stdin", group: "Message" },
    "emitter-role": { kind: "string", value: "ROLE", about: "Role of the sender, kept in the envelope", group: "Message" },
    "session-id": { kind: "string", value: "ID", about: "Session that it belongs to", group: "Message" },
    "schedule-run-id": { kind: "string", value: "ID", about: "Scheduled run that it belongs to", group: "Message" },
    batch: { kind: "string", value: "FILE", about: "Many messages, one JSON object a line, - for stdin; all or none", group: "Message" },
    "dedup-key": { kind: "string", value: "KEY", about: "Accept only once as long as the first one is kept", group: "Once" },
    "on-duplicate": {
      kind: "string",
      value: "keep|fail",
      about: "For a known key print the first id (keep), or exit 1 (fail)",
      group: "Once",
    },
    ack: { kind: "boolean", about: "Send again until the receiver acknowledges", group: "Bounds" },
    "max-attempts": { kind: "string", value: "N", about: "Send at most this often", group: "Bounds" },
    "retry-for": { kind: "string", value: "D", about: "As many attempts as trying for this long needs", group: "Bounds" },
    "expires-in": { kind: "string", value: "D", about: "Do not send once this long has passed", group: "Time" },
    "expires-at": { kind: "string", value: "T", about: "Do not send at or after this time", group: "Time" },
    ...WHEN,
    ...JSON_FLAG,
    ...NETWORK_FS,
  },
  excludes: [
    ["body", "body-file", "text", "text-file"],
    ["max-attempts", "retry-for"],
    ["expires-in", "expires-at"],
    ["delay", "not-before"],
  ],
  examples: [
    { line: "outbox enqueue --kind build --to me --text 'main is red'", about: "Say something" },
    { line: "outbox enqueue --kind backup --to me --dedup-key backup:2026-12-24", about: "Once a day, however often it is called" },
    { line: "outbox enqueue --kind report --to team --body-file - --retry-for 3d", about: "Body from stdin, tried for three days" },
  ],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("./commands/enqueue.ts"),
};

const revive: CommandSpec = {
  name: "revive",
  group: HAND_IN,
  summary: "Commit one heartbeat for each seat",
  usage: "revive SEAT... --reset-epoch SECONDS [flags]",
  about: ["One revival_ping a seat, once for each epoch: calling it again changes nothing. Prints one id a seat, in the order given."],
  words: [{ name: "SEAT", about: "Destination to keep alive", min: 1, max: Number.POSITIVE_INFINITY }],
  flags: {
    "reset-epoch": { kind: "string", value: "SECONDS", about: "Epoch seconds at which the seat is free again; 0 for none" },
    ttl: { kind: "string", value: "D", about: "Do not send once this long has passed since then (1h)", group: "Time" },
    ...WHEN,
    "max-attempts": { kind: "string", value: "N", about: "Send at most this often", group: "Bounds" },
    ...JSON_FLAG,
    ...NETWORK_FS,
  },
  excludes: [["delay", "not-before"]],
  examples: [{ line: "outbox revive seat-1 seat-2 --reset-epoch 1767225600", about: "Two seats whose limit is lifted at that time" }],
  exits: [65, 74, 75, 77, 78],
  load: () => import("./commands/revive.ts"),
};

const run: CommandSpec = {
  name: "run",
  group: DELIVER,
  summary: "Deliver what is due: for ever, or once",
  usage: "run [--once]",
  about: [
    "Runs your command for each message that is due and records what came of it. Runners may overlap; a message has one at a time. SIGTERM and SIGINT let running commands finish.",
  ],
  words: [],
  flags: {
    once: { kind: "boolean", about: "Deliver what is due now, then exit" },
    json: { kind: "boolean", about: "With --once: print the counts as JSON" },
    ...NETWORK_FS,
  },
  examples: [
    { line: "outbox run", about: "As a service" },
    { line: "outbox run --once", about: "From cron, each minute" },
  ],
  exits: [74, 75, 77, 78, 130, 143],
  load: () => import("./commands/run.ts"),
};

const ls: CommandSpec = {
  name: "ls",
  group: LOOK,
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
  load: () => import("./commands/ls.ts"),
};

const show: CommandSpec = {
  name: "show",
  group: LOOK,
  summary: "Show messages whole: envelope, attempts, history",
  usage: "show ID...",
  words: [IDS],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox show 417", about: "By the number that ls prints" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/show.ts"),
};

const stats: CommandSpec = {
  name: "stats",
  group: LOOK,
  summary: "Count what is waiting and what came of the rest",
  usage: "stats [--json]",
  words: [],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox stats --json", about: "Depth, oldest due age, rows by status" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/stats.ts"),
};

const ack: CommandSpec = {
  name: "ack",
  group: STEP_IN,
  summary: "Acknowledge a message with its token",
  usage: "ack [ID TOKEN]",
  about: ["Without arguments it reads OUTBOX_ID and OUTBOX_ACK_TOKEN, which every delivered command has in its environment."],
  words: [
    { name: "ID", about: "32 hex digits, or the number that ls prints", min: 0, max: 1 },
    { name: "TOKEN", about: "The token that was sent with it", min: 0, max: 1 },
  ],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox ack", about: "Within a delivered command" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/ack.ts"),
};

const retry: CommandSpec = {
  name: "retry",
  group: STEP_IN,
  summary: "Send dead or expired messages again",
  usage: "retry ID... [flags]",
  about: ["Back to pending with all attempts, due now. A message whose expiry has passed needs a new one."],
  words: [IDS],
  flags: {
    "expires-in": { kind: "string", value: "D", about: "New expiry, this long from now" },
    rate: { kind: "string", value: "N/UNIT", about: "Spread their due times: 5/s, 10/m, 100/h" },
    ...DRY_RUN,
    ...JSON_FLAG,
  },
  examples: [{ line: "outbox retry 417 418 --expires-in 1d", about: "Two messages, for one more day" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/retry.ts"),
};

const cancel: CommandSpec = {
  name: "cancel",
  group: STEP_IN,
  summary: "Stop messages that wait to be sent",
  usage: "cancel ID... [flags]",
  about: ["They end as expired and can be retried. One whose command is running is refused."],
  words: [IDS],
  flags: { ...DRY_RUN, ...JSON_FLAG },
  examples: [{ line: "outbox cancel 417", about: "Do not send it" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/cancel.ts"),
};

const purge: CommandSpec = {
  name: "purge",
  group: STEP_IN,
  summary: "Delete messages with their history",
  usage: "purge ID... [flags]",
  about: ["Deletes whatever the status, and leaves an audit entry. One whose command is running is refused without --force."],
  words: [IDS],
  flags: { force: { kind: "boolean", about: "Also one whose command is running" }, ...DRY_RUN, ...JSON_FLAG },
  examples: [{ line: "outbox purge 417 --dry-run", about: "See what would go" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/purge.ts"),
};

const init: CommandSpec = {
  name: "init",
  group: SET_UP,
  summary: "Write a settings file to start from",
  usage: "init [FILE]",
  about: ["Every setting with its default, commented out. Never writes over a file. Without FILE, where settings are looked for."],
  words: [{ name: "FILE", about: "The file to write", min: 0, max: 1 }],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox init", about: "In ~/.config/outbox/settings.yaml" }],
  exits: [1, 74, 77],
  load: () => import("./commands/init.ts"),
};

const config: CommandSpec = {
  name: "config",
  group: SET_UP,
  summary: "Check the settings, or show them",
  usage: "config check|show|path|schema",
  about: [
    "check tells every mistake with its line, and warns of what is allowed and yet unwise. show prints each setting with where it comes from, path the file in use, schema the JSON Schema for an editor.",
  ],
  words: [{ name: "WHAT", about: "check, show, path or schema", min: 1, max: 1, choices: ["check", "show", "path", "schema"] }],
  flags: { ...JSON_FLAG },
  examples: [
    { line: "outbox config check", about: "Before the next run meets it" },
    { line: "outbox config show --json", about: "One setting a line" },
  ],
  exits: [1, 77, 78],
  load: () => import("./commands/config.ts"),
};

const migrate: CommandSpec = {
  name: "migrate",
  group: SET_UP,
  summary: "Bring a database to the schema of this outbox",
  usage: "migrate [--install]",
  words: [],
  flags: { install: { kind: "boolean", about: "Add the tables to a database of your own program" }, ...JSON_FLAG },
  examples: [{ line: "outbox migrate --install --db ./state.db", about: "Keep the outbox in your program's database" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("./commands/migrate.ts"),
};

const version: CommandSpec = {
  name: "version",
  group: SET_UP,
  summary: "Print the version",
  usage: "version [--json]",
  words: [],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox version --json", about: "With the schema number and the platform" }],
  exits: [],
  load: () => import("./commands/version.ts"),
};

const help: CommandSpec = {
  name: "help",
  group: SET_UP,
  summary: "Explain a command",
  usage: "help [COMMAND]",
  words: [{ name: "COMMAND", about: "Name of a command", min: 0, max: 1 }],
  flags: {},
  examples: [{ line: "outbox help enqueue", about: "The same as outbox enqueue --help" }],
  exits: [],
  load: () => import("./commands/help.ts"),
};

/** Headings of `outbox --help`, in its order. */
export const GROUPS: readonly string[] = [HAND_IN, DELIVER, LOOK, STEP_IN, SET_UP];

export const COMMANDS: readonly CommandSpec[] = [
  enqueue,
  revive,
  run,
  ls,
  show,
  stats,
  ack,
  retry,
  cancel,
  purge,
  init,
  config,
  migrate,
  version,
  help,
];
