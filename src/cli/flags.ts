/** Flags and words that several commands share, so that one word means one thing everywhere. */
import type { FlagSpec, WordSpec } from "./spec.ts";

/** Every command takes these, before or after its name. */
export const COMMON: Readonly<Record<string, FlagSpec>> = {
  config: { kind: "string", value: "FILE", about: "Settings file, instead of $OUTBOX_CONFIG and the usual places", group: "Common" },
  db: { kind: "string", value: "PATH", about: "Database, instead of $OUTBOX_DB and the settings", group: "Common" },
  source: { kind: "string", value: "NAME", about: "Database by its name under `sources` in the settings", group: "Common" },
};

export const JSON_FLAG = { json: { kind: "boolean", about: "Print JSON, one object a line" } } as const satisfies Record<string, FlagSpec>;

export const NETWORK_FS = {
  "allow-network-fs": { kind: "boolean", about: "Accept a database on a network file system, where locks may fail" },
} as const satisfies Record<string, FlagSpec>;

export const DRY_RUN = { "dry-run": { kind: "boolean", about: "Say what would change, change nothing" } } as const satisfies Record<
  string,
  FlagSpec
>;

export const IDS: WordSpec = { name: "ID", about: "32 hex digits, or the number that ls prints", min: 1, max: Number.POSITIVE_INFINITY };

export const WHEN = {
  delay: { kind: "string", value: "D", about: "Send after this long", group: "Time" },
  "not-before": { kind: "string", value: "T", about: "Send from this time on", group: "Time" },
} as const satisfies Record<string, FlagSpec>;

/** Of commands that take a filter in their place. */
export const IDS_OR_FILTER: WordSpec = { ...IDS, min: 0 };

export const FILTERS = {
  status: { kind: "list", value: "STATUS", about: "pending, delivering, delivered, acked, dead_letter, expired", group: "Filters" },
  kind: { kind: "list", value: "KIND", about: "This kind", group: "Filters" },
  to: { kind: "list", value: "DEST", about: "This destination", group: "Filters" },
  "dedup-key": { kind: "list", value: "KEY", about: "This deduplication key", group: "Filters" },
  "ordering-key": { kind: "list", value: "KEY", about: "This ordering key", group: "Filters" },
  reason: { kind: "list", value: "WORD", about: "Reason of the last move, for example max_attempts", group: "Filters" },
  since: { kind: "string", value: "T", about: "Last moved at or after this time, or within this long: 2h", group: "Filters" },
  before: { kind: "string", value: "T", about: "Last moved before this time, or longer ago than this", group: "Filters" },
} as const satisfies Record<string, FlagSpec>;

/** What a command changes that got no ID: nothing without one of these. */
export const CHANGED = {
  ...FILTERS,
  all: { kind: "boolean", about: "All messages that can be changed so", group: "Filters" },
} as const satisfies Record<string, FlagSpec>;
