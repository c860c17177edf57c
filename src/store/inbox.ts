/**
 * A consumer's inbox: what it has handled, so that a message that comes twice is handled once. Work is begun, and completed or
 * abandoned by whoever holds the token of that beginning. These functions open no transaction: each stands in one of its caller's,
 * so that a rollback takes the entry back with everything else.
 */
import type { DispatchRef } from "../core/dispatch.ts";
import { invariant } from "../core/errors.ts";
import type { Standing } from "../core/seams.ts";
import { type Handle, type Params, statement } from "./statement.ts";

/** The right to complete or abandon what was begun. Plain data: it may be kept, and handed on. */
export interface InboxClaim {
  readonly consumer: string;
  /** 32 hex digits. */
  readonly dispatch_id: string;
  readonly token: string;
}

/** What came of asking to begin. */
export type Begun =
  /** It is the asker's own to do. */
  | { readonly outcome: "begun"; readonly claim: InboxClaim }
  /** Its success is recorded, at this time in epoch seconds: there is nothing to do. */
  | { readonly outcome: "duplicate"; readonly done_at: number }
  /** Somebody works at it. `holder`: host, pid and process start time; `begun_at`: since when, epoch seconds. */
  | { readonly outcome: "held"; readonly holder: string; readonly begun_at: number };

export interface BeginTerms {
  /** Epoch seconds. */
  readonly now: number;
  /** Host, pid and start time of this process. */
  readonly holder: string;
  /** A fresh token. */
  readonly token: string;
  /** What is known of the process that holds an entry. */
  readonly standing: (holder: string) => Standing;
}

/**
 * After so many seconds an entry is taken over whose process cannot be looked for: of another host, or of this machine under an
 * earlier name. Whoever works at one message for longer than a day loses it only to somebody on another host.
 */
export const TAKE_OVER_UNKNOWN_S = 86_400;

interface Key {
  readonly consumer: string;
  /** 32 hex digits. The dispatch may be one of another database. */
  readonly id: string;
}

interface Entry {
  readonly begun_at: number;
  readonly holder: string | null;
  readonly token: string | null;
  readonly done_at: number | null;
}

/** Begins work, anew or in the place of a process that has ended. Its first statement takes the write lock: what is read then stays so. */
export function begin(db: Handle, { consumer, id }: Key, { now, holder, token, standing }: BeginTerms): Begun {
  const begun: Begun = { outcome: "begun", claim: { consumer, dispatch_id: id, token } };
  const entered = statement(
    db,
    `INSERT INTO main.dispatch_inbox (consumer, dispatch_id, begun_at, holder, token) VALUES ($consumer, $id, $now, $holder, $token)
     ON CONFLICT (consumer, dispatch_id) DO NOTHING`,
  ).run({ consumer, id, now, holder, token });
  if (entered.changes === 1) return begun;
  const entry = statement<Entry>(
    db,
    `SELECT begun_at, holder, token, done_at FROM main.dispatch_inbox WHERE consumer = $consumer AND dispatch_id = $id`,
  ).get({ consumer, id });
  invariant(entry !== null, "an entry that is in the way is there");
  if (entry.done_at !== null) return { outcome: "duplicate", done_at: entry.done_at };
  invariant(entry.holder !== null, "an entry that is not done has a holder");
  const known = standing(entry.holder);
  const isAbandoned = known === "gone" || (known === "unknown" && entry.begun_at <= now - TAKE_OVER_UNKNOWN_S);
  if (!isAbandoned) return { outcome: "held", holder: entry.holder, begun_at: entry.begun_at };
  const taken = statement(
    db,
    `UPDATE main.dispatch_inbox SET begun_at = $now, holder = $holder, token = $token
     WHERE consumer = $consumer AND dispatch_id = $id AND token = $old AND done_at IS NULL`,
  ).run({ consumer, id, now, holder, token, old: entry.token });
  invariant(taken.changes === 1, "an entry that was read under the write lock is still so");
  return begun;
}

/** Records the success. `lost`: somebody took it over, or it was rolled back; nothing changes. */
export function complete(db: Handle, claim: InboxClaim, now: number): "completed" | "lost" {
  const { changes } = statement(
    db,
    `UPDATE main.dispatch_inbox SET done_at = $now, holder = NULL, token = NULL
     WHERE consumer = $consumer AND dispatch_id = $dispatch_id AND token = $token AND done_at IS NULL`,
  ).run({ ...named(claim), now });
  return changes === 1 ? "completed" : "lost";
}

/** Gives it back, so that the next who asks begins anew. `lost`: somebody took it over, or it was rolled back; nothing changes. */
export function abandon(db: Handle, claim: InboxClaim): "abandoned" | "lost" {
  const { changes } = statement(
    db,
    `DELETE FROM main.dispatch_inbox
     WHERE consumer = $consumer AND dispatch_id = $dispatch_id AND token = $token AND done_at IS NULL`,
  ).run(named(claim));
  return changes === 1 ? "abandoned" : "lost";
}

/** Not the object itself: a caller's may hold more. */
function named({ consumer, dispatch_id, token }: InboxClaim): Params {
  return { consumer, dispatch_id, token };
}

/** Which entry a dispatch has: by its number, in this database. */
export function idOf(db: Handle, ref: DispatchRef): string | null {
  if ("id" in ref) return ref.id;
  return statement<{ id: string }>(db, `SELECT id FROM main.dispatch_outbox WHERE seq = $seq`).get({ seq: ref.seq })?.id ?? null;
}

export interface ForgetTerms {
  /** Epoch seconds. */
  readonly now: number;
  /** Only what was done, or begun, by then. */
  readonly before: number;
  /** How many of the oldest are known to be kept. */
  readonly skip: number;
  readonly limit: number;
  readonly isAlive: (holder: string) => boolean;
}

/**
 * Forgets the oldest entries. Kept is what belongs to a message of this database that may still come again, and what somebody works
 * at: a process of this host that lives, or one that cannot be looked for and began within a day.
 * @returns how many were looked at and stay, and how many are gone
 */
export function forget(
  db: Handle,
  { now, before, skip, limit, isAlive }: ForgetTerms,
): { readonly kept: number; readonly removed: number } {
  // OFFSET walks the index alone, so what has to be kept costs the rest of the sweep next to nothing.
  const oldest = statement<Entry & { readonly consumer: string; readonly dispatch_id: string; readonly may_come: number }>(
    db,
    `SELECT i.consumer, i.dispatch_id, i.begun_at, i.holder, i.token, i.done_at,
       EXISTS (SELECT 1 FROM main.dispatch_outbox o WHERE o.id = i.dispatch_id AND o.status IN ('pending', 'delivering')) AS may_come
     FROM (SELECT consumer, dispatch_id FROM main.dispatch_inbox INDEXED BY dispatch_inbox_age
       WHERE coalesce(done_at, begun_at) <= $before ORDER BY coalesce(done_at, begun_at) LIMIT $limit + 0 OFFSET $skip + 0) AS due
     CROSS JOIN main.dispatch_inbox i ON i.consumer = due.consumer AND i.dispatch_id = due.dispatch_id`,
  ).all({ before, limit, skip });
  const isFree = ({ holder, begun_at: begunAt }: Entry): boolean =>
    holder === null || (begunAt <= now - TAKE_OVER_UNKNOWN_S && !isAlive(holder));
  const free = oldest.filter((entry) => entry.may_come === 0 && isFree(entry));
  const remove = statement(
    db,
    `DELETE FROM main.dispatch_inbox
     WHERE consumer = $consumer AND dispatch_id = $dispatch_id AND coalesce(done_at, begun_at) <= $before AND token IS $token`,
  );
  const removed = free.reduce(
    (sum, { consumer, dispatch_id, token }) => sum + remove.run({ consumer, dispatch_id, token, before }).changes,
    0,
  );
  return { kept: oldest.length - removed, removed };
}
