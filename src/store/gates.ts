/** What lets through and what does not: circuits of destinations, holds of operators. */
import { invariant } from "../core/errors.ts";
import { type Handle, statement } from "./statement.ts";

/** When a destination's circuit opens, and for how long. `failures` 0 turns circuits off. */
export interface CircuitTerms {
  readonly failures: number;
  /** Seconds. */
  readonly cooldownS: number;
}

export type CircuitChange = "opened" | "closed" | "still open" | null;

/**
 * Notes that a started command failed. Enough failures in a row open the circuit; a failed probe starts a new cooldown. One that
 * began before the circuit opened changes no cooldown that still runs.
 */
export function noteFailure(db: Handle, deliverTo: string, terms: CircuitTerms, now: number): CircuitChange {
  if (terms.failures === 0) return null;
  const before = circuitOf(db, deliverTo);
  // It enters with a closed circuit: what counts the open ones sees updates alone.
  statement(db, `INSERT INTO main.dispatch_destinations (deliver_to) VALUES ($to) ON CONFLICT (deliver_to) DO NOTHING`).run({
    to: deliverTo,
  });
  const row = statement<{ open_until: number | null }>(
    db,
    `UPDATE main.dispatch_destinations SET failures = failures + 1, failed_at = $now,
       open_until = CASE WHEN open_until > $now THEN open_until
         WHEN failures + 1 >= $limit OR open_until IS NOT NULL THEN $now + $cooldown END
     WHERE deliver_to = $to RETURNING open_until`,
  ).get({ to: deliverTo, now, limit: terms.failures, cooldown: terms.cooldownS });
  if (row?.open_until == null) return null;
  return before === null ? "opened" : "still open";
}

/** Notes a success: it closes the circuit, whoever had it. */
export function noteSuccess(db: Handle, deliverTo: string): CircuitChange {
  const before = circuitOf(db, deliverTo);
  statement(
    db,
    `UPDATE main.dispatch_destinations SET failures = 0, failed_at = NULL, open_until = NULL WHERE deliver_to = $to AND (failures > 0 OR open_until IS NOT NULL)`,
  ).run({ to: deliverTo });
  return before === null ? null : "closed";
}

/** Circuits were turned off: none stays open. */
export function closeAll(db: Handle): void {
  statement(
    db,
    `UPDATE main.dispatch_destinations INDEXED BY dispatch_open SET open_until = NULL, failures = 0, failed_at = NULL WHERE open_until IS NOT NULL`,
  ).run({});
}

export interface Circuit {
  readonly deliver_to: string;
  /** In a row. */
  readonly failures: number;
  /** The last of them, epoch seconds. */
  readonly failed_at: number;
  /** When the circuit opened, epoch seconds. */
  readonly opened_at: number;
  /** End of the cooldown, epoch seconds; once it is past, one claim at a time may try. */
  readonly open_until: number;
}

/** Open circuits, those past their cooldown included: those that have been open longest first. @param atMost so many; all unless given */
export function openCircuits(db: Handle, atMost = -1): Circuit[] {
  return statement<Circuit>(
    db,
    `SELECT deliver_to, failures, failed_at, opened_at, open_until FROM main.dispatch_destinations INDEXED BY dispatch_opened
     WHERE open_until IS NOT NULL ORDER BY opened_at, deliver_to LIMIT $at_most + 0`,
  ).all({ at_most: atMost });
}

function circuitOf(db: Handle, deliverTo: string): number | null {
  return (
    statement<{ open_until: number | null }>(db, `SELECT open_until FROM main.dispatch_destinations WHERE deliver_to = $to`).get({
      to: deliverTo,
    })?.open_until ?? null
  );
}

/** What a hold names. All that is given must match; nothing given is everything. */
export interface HoldScope {
  readonly deliverTo: string | null;
  readonly kind: string | null;
  readonly orderingKey: string | null;
}

export interface Hold {
  readonly id: number;
  readonly deliver_to: string | null;
  readonly kind: string | null;
  readonly ordering_key: string | null;
  readonly note: string | null;
  readonly created_at: number;
  readonly ends_at: number | null;
  readonly actor: string;
}

export interface HoldTerms {
  readonly now: number;
  /** Epoch seconds; null: until somebody resumes. */
  readonly endsAt: number | null;
  readonly note: string | null;
  readonly actor: string;
}

const HOLD = `id, deliver_to, kind, ordering_key, note, created_at, ends_at, actor`;

/** Begins a hold, or changes note and end of the one that names the same. Stops claims and nothing else. */
export function hold(db: Handle, scope: HoldScope, terms: HoldTerms): Hold {
  const names = { to: scope.deliverTo, kind: scope.kind, key: scope.orderingKey };
  const what = { ends: terms.endsAt, note: terms.note, now: terms.now, actor: terms.actor };
  const changed = statement<Hold>(
    db,
    `UPDATE main.dispatch_holds SET ends_at = $ends, note = coalesce($note, note), actor = $actor, created_at = $now
     WHERE deliver_to IS $to AND kind IS $kind AND ordering_key IS $key RETURNING ${HOLD}`,
  ).get({ ...names, ...what });
  const begun =
    changed ??
    statement<Hold>(
      db,
      `INSERT INTO main.dispatch_holds (deliver_to, kind, ordering_key, note, created_at, ends_at, actor)
       VALUES ($to, $kind, $key, $note, $now, $ends, $actor) RETURNING ${HOLD}`,
    ).get({ ...names, ...what });
  invariant(begun !== null, "an INSERT that succeeds returns its row");
  audit(db, "dispatch.hold", scope, terms, { note: begun.note, ends_at: terms.endsAt });
  return begun;
}

/** Ends the hold that names exactly this. @returns how many ended: 0 or 1; with `all`, every hold */
export function resume(db: Handle, scope: HoldScope | "all", terms: { readonly now: number; readonly actor: string }): number {
  const removed =
    scope === "all"
      ? statement(db, `DELETE FROM main.dispatch_holds`).run({})
      : statement(db, `DELETE FROM main.dispatch_holds WHERE deliver_to IS $to AND kind IS $kind AND ordering_key IS $key`).run({
          to: scope.deliverTo,
          kind: scope.kind,
          key: scope.orderingKey,
        });
  if (removed.changes > 0) audit(db, "dispatch.resume", scope, terms, { ended: removed.changes });
  return removed.changes;
}

/** Ends holds whose time is over: their rows may go from here on. */
export function endHolds(db: Handle, now: number): void {
  statement(db, `DELETE FROM main.dispatch_holds WHERE ends_at IS NOT NULL AND ends_at <= $now`).run({ now });
}

export function holds(db: Handle): Hold[] {
  return statement<Hold>(db, `SELECT ${HOLD} FROM main.dispatch_holds ORDER BY id`).all({});
}

function audit(
  db: Handle,
  action: string,
  scope: HoldScope | "all",
  terms: { readonly now: number; readonly actor: string },
  details: object,
): void {
  const names = scope === "all" ? { all: true } : { deliver_to: scope.deliverTo, kind: scope.kind, ordering_key: scope.orderingKey };
  statement(
    db,
    `INSERT INTO main.admin_events (created_at, action, target_id, details, actor) VALUES ($now, $action, NULL, $details, $actor)`,
  ).run({ now: terms.now, action, details: JSON.stringify({ ...names, ...details }), actor: terms.actor });
}
