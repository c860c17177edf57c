/** Commands with which somebody steps in. Only data. */
import { DRY_RUN, IDS, JSON_FLAG } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Step in";

const ack: CommandSpec = {
  name: "ack",
  group: GROUP,
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
  load: () => import("../commands/ack.ts"),
};

const retry: CommandSpec = {
  name: "retry",
  group: GROUP,
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
  load: () => import("../commands/retry.ts"),
};

const cancel: CommandSpec = {
  name: "cancel",
  group: GROUP,
  summary: "Stop messages that wait to be sent",
  usage: "cancel ID... [flags]",
  about: ["They end as expired and can be retried. One whose command is running is refused."],
  words: [IDS],
  flags: { ...DRY_RUN, ...JSON_FLAG },
  examples: [{ line: "outbox cancel 417", about: "Do not send it" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("../commands/cancel.ts"),
};

const purge: CommandSpec = {
  name: "purge",
  group: GROUP,
  summary: "Delete messages with their history",
  usage: "purge ID... [flags]",
  about: ["Deletes whatever the status, and leaves an audit entry. One whose command is running is refused without --force."],
  words: [IDS],
  flags: { force: { kind: "boolean", about: "Also one whose command is running" }, ...DRY_RUN, ...JSON_FLAG },
  examples: [{ line: "outbox purge 417 --dry-run", about: "See what would go" }],
  exits: [1, 74, 75, 77, 78],
  load: () => import("../commands/purge.ts"),
};

export const STEP_IN: readonly CommandSpec[] = [ack, retry, cancel, purge];
