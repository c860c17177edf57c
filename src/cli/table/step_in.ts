/** Commands with which somebody steps in. Only data. */
import { CHANGED, DRY_RUN, IDS_OR_FILTER, JSON_FLAG } from "../flags.ts";
import type { CommandSpec, FlagSpec } from "../spec.ts";

const GROUP = "Step in";

const ack: CommandSpec = {
  name: "ack",
  group: GROUP,
  summary: "Acknowledge a message with its token",
  usage: "ack [ID TOKEN]",
  about: [
    "Without arguments it reads OUTBOX_ID and OUTBOX_ACK_TOKEN, which a command has in its environment when its message was enqueued with --ack.",
  ],
  words: [
    { name: "ID", about: "32 hex digits, or the number that ls prints", min: 0, max: 1 },
    { name: "TOKEN", about: "The token that was sent with it", min: 0, max: 1 },
  ],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox ack", about: "Within a delivered command" }],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/ack.ts"),
};

/** What is true of every change by filter. */
const OF_MANY = [
  "A filter changes what is there when it begins, in small steps beside whatever else works. Exit 0 also when nothing matches, 1 when something that matches was refused. Interrupted, it ends between two steps and says how many were changed.",
];

const retry: CommandSpec = {
  name: "retry",
  group: GROUP,
  summary: "Send dead or expired messages again",
  usage: "retry ID... | filters | --all [flags]",
  about: [
    "Back to pending with all attempts, due now, or spread with --rate, the oldest first. A message whose expiry has passed needs a new one. The last error is cleared for an ID and kept for a filter.",
    ...OF_MANY,
  ],
  words: [IDS_OR_FILTER],
  flags: {
    ...CHANGED,
    "expires-in": {
      kind: "string",
      value: "D",
      about: "New expiry, this long from now; one that --rate would make due after it is refused",
    },
    rate: { kind: "string", value: "N/UNIT", about: "Spread their due times: 5/s, 10/m, 100/h" },
    ...DRY_RUN,
    ...JSON_FLAG,
  },
  examples: [
    { line: "outbox retry 417 418 --expires-in 1d", about: "Two messages, for one more day" },
    { line: "outbox retry --to me --reason max_attempts --since 1d --rate 5/s", about: "What an outage killed, five a second" },
  ],
  exits: [1, 65, 74, 75, 77, 78, 130, 143],
  load: () => import("../commands/retry.ts"),
};

const cancel: CommandSpec = {
  name: "cancel",
  group: GROUP,
  summary: "Stop messages that wait to be sent",
  usage: "cancel ID... | filters | --all [flags]",
  about: ["They end as expired and can be retried. One whose command is running is refused.", ...OF_MANY],
  words: [IDS_OR_FILTER],
  flags: { ...CHANGED, ...DRY_RUN, ...JSON_FLAG },
  examples: [
    { line: "outbox cancel 417", about: "Do not send it" },
    { line: "outbox cancel --kind heartbeat --dry-run", about: "How many heartbeats wait" },
  ],
  exits: [1, 65, 74, 75, 77, 78, 130, 143],
  load: () => import("../commands/cancel.ts"),
};

const purge: CommandSpec = {
  name: "purge",
  group: GROUP,
  summary: "Delete messages with their history",
  usage: "purge ID... | filters | --all [flags]",
  about: [
    "Deletes by ID whatever the status, by filter what has come to its end unless --status says otherwise, and leaves an audit entry. One whose command is running is refused without --force.",
    ...OF_MANY,
  ],
  words: [IDS_OR_FILTER],
  flags: { ...CHANGED, force: { kind: "boolean", about: "Also one whose command is running" }, ...DRY_RUN, ...JSON_FLAG },
  examples: [
    { line: "outbox purge 417 --dry-run", about: "See what would go" },
    { line: "outbox purge --status delivered --before 30d", about: "What was delivered a month ago" },
  ],
  exits: [1, 65, 74, 75, 77, 78, 130, 143],
  load: () => import("../commands/purge.ts"),
};

/** What a hold names. */
const SCOPE = {
  to: { kind: "string", value: "DEST", about: "Messages to this destination", group: "What" },
  kind: { kind: "string", value: "KIND", about: "Messages of this kind", group: "What" },
  "ordering-key": { kind: "string", value: "KEY", about: "Messages of this ordering key", group: "What" },
} as const satisfies Record<string, FlagSpec>;

const hold: CommandSpec = {
  name: "hold",
  group: GROUP,
  summary: "Send nothing of a destination, kind or key; alone: list holds",
  usage: "hold [--to DEST] [--kind KIND] [--ordering-key KEY] [flags]",
  about: [
    "What is held waits, however late it came, and spends no attempt; it still expires. All that is given must match. Holding the same again changes note and end. What is being sent is not stopped.",
  ],
  words: [],
  flags: {
    ...SCOPE,
    all: { kind: "boolean", about: "All messages", group: "What" },
    for: { kind: "string", value: "D", about: "Resume by itself after this long" },
    note: { kind: "string", value: "TEXT", about: "Why, for those who look at the list" },
    ...DRY_RUN,
    ...JSON_FLAG,
  },
  excludes: [
    ["all", "to"],
    ["all", "kind"],
    ["all", "ordering-key"],
  ],
  examples: [
    { line: "outbox hold --to seat-1 --for 2h --note 'new keyboard'", about: "Nothing to seat-1 for two hours" },
    { line: "outbox hold", about: "What is held" },
  ],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/hold.ts"),
};

const resume: CommandSpec = {
  name: "resume",
  group: GROUP,
  summary: "End a hold, or all of them",
  usage: "resume [--to DEST] [--kind KIND] [--ordering-key KEY] | --all",
  about: ["Ends the hold that names exactly this; --all ends every hold. Others that cover the same messages stay."],
  words: [],
  flags: { ...SCOPE, all: { kind: "boolean", about: "Every hold there is", group: "What" }, ...DRY_RUN, ...JSON_FLAG },
  excludes: [
    ["all", "to"],
    ["all", "kind"],
    ["all", "ordering-key"],
  ],
  examples: [{ line: "outbox resume --to seat-1", about: "What was held is due at once" }],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/resume.ts"),
};

export const STEP_IN: readonly CommandSpec[] = [ack, retry, cancel, purge, hold, resume];
