/**
 * What is kept how long. A sweep is a row of small transactions, so that it never sits in the way of a claim; SQLite gives the
 * freed pages to later rows, so that the file stops growing.
 */
import { invariant } from "../core/errors.ts";
import type { Status } from "../core/lifecycle.ts";
import { forget as forgetEntries } from "./inbox.ts";
import { type Handle, statement } from "./statement.ts";

/** Seconds, of a dispatch from its final move on; 0 keeps for ever. */
export interface RetentionTerms {
  /** Of `delivered` and `acked`. */
  readonly deliveredS: number;
  /** Of `dead_letter` and `expired`. */
  readonly deadLetterS: number;
  /** Of what a consumer's inbox remembers. */
  readonly inboxS: number;
}

export interface Swept {
  /** Dispatches and entries of inboxes that this call removed. */
  readonly removed: number;
  /** How many of them were dead letters: worth a warning. */
  readonly deadLetters: number;
  /** Whether there is more to remove: call again. */
  readonly more: boolean;
}

export interface SweepTerms {
  readonly windows: RetentionTerms;
  /** Epoch seconds. */
  readonly now: number;
  /** Whether the transaction has lasted long enough. */
  readonly isLate: () => boolean;
  /** Whether this holder of an entry is a process that still lives on this host. */
  readonly isAlive: (holder: string) => boolean;
  /** How far the sweep has come; null: this call begins one. */
  readonly progress: SweepProgress | null;
}

/** Of a sweep that goes on with the next call. */
export interface SweepProgress {
  /** Its audit row; null: nothing was removed yet. */
  readonly auditId: number | null;
  /** How many entries of inboxes, from the oldest on, it has looked at and kept. */
  readonly kept: number;
}

/** Bounds of one transaction. A row may hold a MiB, and what is deleted is overwritten: bytes count too. */
const AT_ONCE = { rows: 200, bytes: 1_048_576 };
/** How long after its last failure a destination without rows is remembered, and a topic after it was last told. */
const FORGET_AFTER_S = { destination: 86_400, topic: 7 * 86_400 };

const KEPT: readonly (readonly [status: Status, window: keyof RetentionTerms])[] = [
  ["delivered", "deliveredS"],
  ["acked", "deliveredS"],
  ["dead_letter", "deadLetterS"],
  ["expired", "deadLetterS"],
];

interface Removed {
  readonly seq: number;
  readonly id: string;
  readonly status: Status;
  readonly bytes: number;
}

/**
 * One batch, in the caller's transaction. The counts stand in one audit row for the whole sweep, raised in the transaction that
 * removes: whatever a crash leaves behind is accounted for.
 */
export function sweep(db: Handle, terms: SweepTerms): Swept & { readonly progress: SweepProgress } {
  const removed: Removed[] = [];
  let bytes = 0;
  const isFull = (): boolean => removed.length >= AT_ONCE.rows || bytes >= AT_ONCE.bytes || (removed.length > 0 && terms.isLate());
  for (const [status, window] of KEPT) {
    const keptS = terms.windows[window];
    if (keptS === 0) continue;
    while (!isFull()) {
      const row = removeOldest(db, status, terms.now - keptS);
      if (row === null) break;
      removed.push(row);
      bytes += row.bytes;
    }
  }
  const before = terms.progress ?? { auditId: null, kept: 0 };
  const entries = isFull() ? null : removeEntries(db, before.kept, terms);
  const inbox = entries?.removed ?? 0;
  // Only along with rows, which are what made the destinations many: an idle outbox must not write at each tick.
  if (removed.length > 0) forget(db, terms.now);
  const auditId = removed.length + inbox === 0 ? before.auditId : account(db, { removed, inbox, auditId: before.auditId, now: terms.now });
  return {
    removed: removed.length + inbox,
    deadLetters: removed.filter((row) => row.status === "dead_letter").length,
    more: entries?.more ?? true,
    progress: { auditId, kept: before.kept + (entries?.kept ?? 0) },
  };
}

function removeEntries(
  db: Handle,
  skip: number,
  { windows, now, isAlive }: SweepTerms,
): { readonly kept: number; readonly removed: number; readonly more: boolean } {
  if (windows.inboxS === 0) return { kept: 0, removed: 0, more: false };
  const { kept, removed } = forgetEntries(db, { now, before: now - windows.inboxS, skip, limit: AT_ONCE.rows, isAlive });
  return { kept, removed, more: kept + removed === AT_ONCE.rows };
}

/** The row goes with its history, and so does its dedup key. Looked for first, because a DELETE that finds nothing costs as much as one. */
function removeOldest(db: Handle, status: Status, before: number): Removed | null {
  const row = statement<Removed>(
    db,
    `SELECT seq, id, status, octet_length(payload) AS bytes FROM main.dispatch_outbox INDEXED BY dispatch_finished
     WHERE status NOT IN ('pending', 'delivering') AND status = $status AND updated_at <= $before ORDER BY updated_at LIMIT 1`,
  ).get({ status, before });
  if (row === null) return null;
  statement(db, `DELETE FROM main.dispatch_outbox WHERE seq = $seq`).run({ seq: row.seq });
  statement(db, `DELETE FROM main.status_transitions WHERE entity_id = $id AND entity_type = 'dispatch'`).run({ id: row.id });
  return row;
}

interface Account {
  readonly removed: readonly Removed[];
  /** Entries of inboxes. */
  readonly inbox: number;
  readonly auditId: number | null;
  readonly now: number;
}

function account(db: Handle, { removed, inbox, auditId, now }: Account): number {
  const counts = Object.fromEntries(KEPT.map(([status]) => [status, removed.filter((row) => row.status === status).length]));
  const { delivered = 0, acked = 0, dead_letter = 0, expired = 0 } = counts;
  const row = statement<{ id: number }>(
    db,
    auditId === null
      ? `INSERT INTO main.admin_events (created_at, action, target_id, details, actor)
         VALUES ($now, 'dispatch.sweep', NULL, json_object('delivered', $delivered, 'acked', $acked, 'dead_letter', $dead_letter,
           'expired', $expired, 'inbox', $inbox, 'ended_at', $now), 'retention')
         RETURNING id`
      : `UPDATE main.admin_events SET details = json_set(details, '$.delivered', details ->> 'delivered' + $delivered,
           '$.acked', details ->> 'acked' + $acked, '$.dead_letter', details ->> 'dead_letter' + $dead_letter,
           '$.expired', details ->> 'expired' + $expired, '$.inbox', details ->> 'inbox' + $inbox, '$.ended_at', $now)
         WHERE id = $id RETURNING id`,
  ).get({ now, delivered, acked, dead_letter, expired, inbox, ...(auditId === null ? {} : { id: auditId }) });
  invariant(row !== null, "the audit row of a sweep stands until the sweep ends");
  return row.id;
}

/** Destinations that nothing waits for, with nothing to remember; topics that nobody has told for long. */
function forget(db: Handle, now: number): void {
  statement(
    db,
    `DELETE FROM main.dispatch_destinations WHERE deliver_to IN (
       SELECT d.deliver_to FROM main.dispatch_destinations d INDEXED BY dispatch_wake
       WHERE d.flight = 0 AND d.wake_at IS NULL AND (d.failures = 0 OR d.failed_at <= $before)
         AND (d.open_until IS NULL OR d.open_until <= $before)
         AND NOT EXISTS (SELECT 1 FROM main.dispatch_outbox o INDEXED BY dispatch_flight WHERE o.status = 'delivering' AND o.deliver_to = d.deliver_to)
       LIMIT $at_once + 0)`,
  ).run({ before: now - FORGET_AFTER_S.destination, at_once: AT_ONCE.rows });
  statement(db, `DELETE FROM main.dispatch_told WHERE told_at <= $before`).run({ before: now - FORGET_AFTER_S.topic });
}
