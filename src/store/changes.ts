/**
 * Changing many: all that a filter names are put back, cancelled or purged, the oldest first, in transactions that are short. One
 * audit row has the filter and the counts; it is raised in each transaction that changes, so that it is true whatever a crash leaves.
 */
import { invariant } from "../core/errors.ts";
import type { Status } from "../core/lifecycle.ts";
import { candidates, type Targeted } from "./candidates.ts";
import { againstCancel, againstPurge, againstRetry, end, type Objection, type Operable, putBack, remove } from "./operator.ts";
import { type Selection, whereOf } from "./selection.ts";
import { type Handle, statement } from "./statement.ts";

/** What is done. Times are epoch seconds. */
export type Change =
  | {
      readonly verb: "retry";
      /** When the first is due; null: at once. */
      readonly dueAt: number | null;
      /** Seconds between the due times of two. */
      readonly gapS: number;
      /** The new expiry; null keeps the old ones. */
      readonly expiresAt: number | null;
    }
  | { readonly verb: "cancel" }
  | { readonly verb: "purge"; readonly force: boolean };

/** The statuses that a verb may be told to change, and those that it changes where the filter names none. */
export const CHANGEABLE: Readonly<Record<Change["verb"], { readonly any: readonly Status[]; readonly untold: readonly Status[] }>> = {
  retry: { any: ["dead_letter", "expired"], untold: ["dead_letter", "expired"] },
  cancel: { any: ["pending", "delivering"], untold: ["pending", "delivering"] },
  purge: {
    any: ["pending", "delivering", "delivered", "acked", "dead_letter", "expired"],
    untold: ["delivered", "acked", "dead_letter", "expired"],
  },
};

export interface ChangeTerms {
  readonly change: Change;
  readonly selection: Selection;
  readonly actor: string;
  readonly dryRun: boolean;
}

/** How many were changed; how many were not, by what was in the way. */
export interface Tally {
  readonly changed: number;
  readonly refused: Readonly<Record<Objection, number>>;
}

/** A change under way. A value: what a transaction that failed would have made of it is never seen. */
export interface Progress extends Tally {
  readonly candidates: readonly number[];
  /** How many of them were looked at. */
  readonly seen: number;
  readonly startedAt: number;
  readonly auditId: number | null;
}

interface Moment {
  /** Epoch seconds. */
  readonly now: number;
  /** Whether this has lasted long enough. */
  readonly isLate: () => boolean;
}

/** Candidates that one statement looks at. */
const PAGE = 64;

/** What is to be looked at. Reads only. */
export function begin(db: Handle, terms: ChangeTerms, now: number): Progress {
  const refused = { wrong_status: 0, live: 0, past_expiry: 0, expires_first: 0 };
  return { candidates: candidates(db, targeted(terms)), seen: 0, changed: 0, refused, startedAt: now, auditId: null };
}

export function isDone(progress: Progress): boolean {
  return progress.seen >= progress.candidates.length;
}

/**
 * Goes past candidates that do not match, as far as time allows. Reads only, so that nobody waits for a lock meanwhile.
 * @returns where it is, and whether something there matches
 */
export function skip(db: Handle, terms: ChangeTerms, progress: Progress, { isLate }: Moment): { progress: Progress; found: boolean } {
  for (let { seen } = progress; ; seen += PAGE) {
    const page = progress.candidates.slice(seen, seen + PAGE);
    const found = matching(db, terms, page).length > 0;
    if (found || page.length === 0 || isLate()) return { progress: { ...progress, seen: found ? seen : seen + page.length }, found };
  }
}

/** One batch, in the caller's transaction; where nothing is to be written, a look at what would happen. */
export function go(db: Handle, terms: ChangeTerms, progress: Progress, { now, isLate }: Moment): Progress {
  const { dryRun, actor } = terms;
  const refused = { ...progress.refused };
  let { seen, changed } = progress;
  // One row at least, or a slow machine would never come to the end.
  while (seen < progress.candidates.length && (seen === progress.seen || !isLate())) {
    const page = progress.candidates.slice(seen, seen + PAGE);
    let looked = page.length;
    for (const { place, ...row } of matching(db, terms, page)) {
      if (isLate() && seen + place > progress.seen) {
        looked = place;
        break;
      }
      const deed = deedOf(terms.change, row, { now, actor, nth: changed, startedAt: progress.startedAt });
      if (typeof deed === "string") refused[deed] += 1;
      else {
        if (!dryRun) deed(db);
        changed += 1;
      }
    }
    seen += looked;
  }
  const next = { ...progress, seen, changed, refused };
  const moved = changed > progress.changed || (progress.auditId !== null && countRefused(refused) > countRefused(progress.refused));
  return moved && !dryRun ? { ...next, auditId: account(db, terms, next, now) } : next;
}

/** All of it at once, in the caller's transaction. */
export function changeAll(db: Handle, terms: ChangeTerms, now: number): Progress {
  return go(db, terms, begin(db, terms, now), { now, isLate: () => false });
}

/** How many were refused, whatever the reason. */
export function countRefused(refused: Tally["refused"]): number {
  return Object.values(refused).reduce((sum, each) => sum + each, 0);
}

/** When the last of those that were put back is due, epoch seconds. */
export function lastDueAt(change: Change, { changed, startedAt }: Progress): number | null {
  return change.verb === "retry" && changed > 0 ? (change.dueAt ?? startedAt) + (changed - 1) * change.gapS : null;
}

function targeted({ change, selection }: ChangeTerms): Targeted {
  const { any, untold } = CHANGEABLE[change.verb];
  const named = selection.status ?? [];
  invariant(
    named.every((each) => any.includes(each)),
    `${change.verb} is told only of statuses that it can change`,
  );
  return { ...selection, status: named.length > 0 ? named : untold };
}

/** The candidates that match, with their place in the page. */
function matching(db: Handle, terms: ChangeTerms, page: readonly number[]): (Operable & { readonly place: number })[] {
  const { where, params } = whereOf(targeted(terms));
  return statement<Operable & { place: number }>(
    db,
    `SELECT page.key AS place, o.seq, o.id, o.status, o.attempt, o.next_attempt_at, o.expires_at
     FROM json_each($page) page CROSS JOIN main.dispatch_outbox o ON o.seq = page.value WHERE ${where} ORDER BY page.key`,
  ).all({ ...params, page: JSON.stringify(page) });
}

/** What is to be done to a row, or what is in the way. */
function deedOf(
  change: Change,
  row: Operable,
  { now, actor, nth, startedAt }: { readonly now: number; readonly actor: string; readonly nth: number; readonly startedAt: number },
): Objection | ((db: Handle) => void) {
  switch (change.verb) {
    case "retry": {
      const spread = change.gapS > 0 || change.dueAt !== null;
      const dueAt = spread ? (change.dueAt ?? startedAt) + nth * change.gapS : now;
      const terms = { now, actor, dueAt, expiresAt: change.expiresAt };
      return againstRetry(row, terms) ?? ((db) => putBack(db, row, terms, "keep the error"));
    }
    case "cancel":
      return againstCancel(row, { now, actor }) ?? ((db) => end(db, row, { now, actor }));
    case "purge":
      return againstPurge(row, { now, actor, force: change.force }) ?? ((db) => remove(db, row));
    default:
      return change satisfies never;
  }
}

/** Absolute counts: the row is this change's alone. */
function account(db: Handle, { change, selection, actor }: ChangeTerms, { auditId, changed, refused }: Progress, now: number): number {
  const counts = { changed, refused: countRefused(refused), now };
  const row =
    auditId === null
      ? statement<{ id: number }>(
          db,
          `INSERT INTO main.admin_events (created_at, action, target_id, details, actor)
           VALUES ($now, $action, NULL, json_set($details, '$.changed', $changed, '$.refused', $refused, '$.ended_at', $now), $actor) RETURNING id`,
        ).get({ ...counts, action: `dispatch.${change.verb}`, details: JSON.stringify({ ...told(selection), ...how(change) }), actor })
      : statement<{ id: number }>(
          db,
          `UPDATE main.admin_events SET details = json_set(details, '$.changed', $changed, '$.refused', $refused, '$.ended_at', $now)
           WHERE id = $id RETURNING id`,
        ).get({ ...counts, id: auditId });
  invariant(row !== null, "the audit row of a change stands until the change ends");
  return row.id;
}

/** The filter in the names of columns. */
function told(selection: Selection): object {
  const { to, dedupKey, orderingKey, ...rest } = selection;
  const all = { ...rest, deliver_to: to, dedup_key: dedupKey, ordering_key: orderingKey };
  const filter = Object.entries(all).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  return filter.length === 0 ? { all: true } : { filter: Object.fromEntries(filter) };
}

function how(change: Change): object {
  if (change.verb === "cancel") return {};
  if (change.verb === "purge") return change.force ? { forced: true } : {};
  const { dueAt, gapS, expiresAt } = change;
  return {
    ...(dueAt === null ? {} : { due_at: dueAt }),
    ...(gapS === 0 ? {} : { gap_seconds: gapS }),
    ...(expiresAt === null ? {} : { expires_at: expiresAt }),
  };
}
