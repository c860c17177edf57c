/** Commands that hand messages in. Only data, but for `enqueue` itself. */
// Loaded with the program: in parts of its own it would start a twentieth later, and every other command needs most of them too.
import * as enqueueCommand from "../commands/enqueue.ts";
import { JSON_FLAG, NETWORK_FS, WHEN } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Hand in";

const enqueue: CommandSpec = {
  name: "enqueue",
  group: GROUP,
  summary: "Commit one message, or a batch, for delivery",
  usage: "enqueue --kind KIND --to DEST [flags]",
  about: [
    "Prints the id once the message is safe on disk. With a deduplication key that is already known, prints the id of the first message and changes nothing.",
    "With --now it then runs the command itself. What keeps it from that is told, and what comes of it, where it fails; neither changes the exit code, because runners see to the message as to any other.",
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
    "ordering-key": { kind: "string", value: "KEY", about: "Send messages of one key one after the other, oldest first", group: "Order" },
    now: { kind: "boolean", about: "Send it at once, from this process, where nothing is in its way", group: "Order" },
    ack: { kind: "boolean", about: "Send again until the receiver acknowledges", group: "Bounds" },
    "max-attempts": { kind: "string", value: "N", about: "Send at most this often", group: "Bounds" },
    "retry-for": { kind: "string", value: "D", about: "As many attempts as trying for this long needs", group: "Bounds" },
    "expires-in": { kind: "string", value: "D", about: "Do not send once this long has passed", group: "Time" },
    "expires-at": { kind: "string", value: "T", about: "Do not send at or after this time", group: "Time" },
    ...WHEN,
    "tenant-id": { kind: "string", value: "ID", about: "Tenant for whom it is sent, else $OUTBOX_TENANT_ID", group: "Origin" },
    "user-id": { kind: "string", value: "ID", about: "User for whom it is sent, else $OUTBOX_USER_ID", group: "Origin" },
    "user-roles": { kind: "string", value: "LIST", about: "Roles of that user, by commas, else $OUTBOX_USER_ROLES", group: "Origin" },
    "correlation-id": { kind: "string", value: "ID", about: "What it is a part of, else $OUTBOX_CORRELATION_ID", group: "Origin" },
    ...JSON_FLAG,
    ...NETWORK_FS,
  },
  excludes: [
    ["body", "body-file", "text", "text-file"],
    ["max-attempts", "retry-for"],
    ["expires-in", "expires-at"],
    ["delay", "not-before"],
    ["now", "batch"],
  ],
  examples: [
    { line: "outbox enqueue --kind build --to me --text 'main is red'", about: "Say something" },
    { line: "outbox enqueue --kind backup --to me --dedup-key backup:2026-12-24", about: "Once a day, however often it is called" },
    { line: "outbox enqueue --kind report --to team --body-file - --retry-for 3d", about: "Body from stdin, tried for three days" },
    {
      line: "outbox enqueue --kind step --to me --ordering-key job-7 --now",
      about: "After the earlier ones of job-7; at once, if there are none",
    },
  ],
  exits: [1, 65, 74, 75, 77, 78, 130, 143],
  load: async () => enqueueCommand,
};

const revive: CommandSpec = {
  name: "revive",
  group: GROUP,
  summary: "Commit one heartbeat for each seat",
  usage: "revive SEAT... --reset-epoch SECONDS [flags]",
  about: [
    "One revival_ping a seat, once for each epoch: calling it again changes nothing. Prints one id a seat, in the order given.",
    "Its origin is that of the environment: $OUTBOX_TENANT_ID, $OUTBOX_USER_ID, $OUTBOX_USER_ROLES, $OUTBOX_CORRELATION_ID.",
  ],
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
  load: () => import("../commands/revive.ts"),
};

export const HAND_IN: readonly CommandSpec[] = [enqueue, revive];
