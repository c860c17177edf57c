/**
 * The outbox inside a program: its tables stand in the program's own SQLite file, so that a message is committed with the state
 * change that it announces. Every function takes the program's `bun:sqlite` handle and is synchronous. Inside
 * `db.transaction(...)` a call is a part of that transaction and neither begins, commits nor migrates; outside of one a call is
 * whole by itself. A runner (`outbox run`) then delivers what was committed; or the program does, what it entered claimed
 * (`enqueue` with `claim`, then `deliver`, the one function that is asynchronous). A program that receives messages handles each once
 * with `inbox`.
 *
 * @example
 * const db = new Database("shop.db", { strict: true });
 * install(db); // once
 * db.transaction(() => {
 *   db.run("UPDATE orders SET paid = 1 WHERE id = 7");
 *   enqueue(db, { kind: "order_paid", deliver_to: "billing", body: { order: 7 }, dedup_key: "paid:7" });
 * }).immediate();
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Answer, Dispatch, DispatchRef } from "./core/dispatch.ts";
import type { Status } from "./core/lifecycle.ts";
import { checkRequest, type EnqueueRequest } from "./core/request.ts";
import { DEFAULT_REVIVAL_TTL_S, revivalRequests } from "./core/revival.ts";
import { hostClock, hostEntropy } from "./host.ts";
import { type Claim, type ClaimedAnswer, type ClaimOptions, enterClaimed } from "./library/claim.ts";
import { changeBy, type Changed, type ChangeFilter, type Filter, FILTERS, selectionOf } from "./library/filter.ts";
import { onOurs, reading, whole } from "./library/handle.ts";
import { bad, boolean, checkOptions, checkToken, nameOf, number, refOf, text, time, whole as wholeNumber } from "./library/input.ts";
import { enqueue as enter } from "./store/enqueue.ts";
import { countPending as depth } from "./store/figures.ts";
import { install as addTables } from "./store/migrate.ts";
import { cancel as end, type OperatorOutcome, purge as remove, retry as putBack } from "./store/operator.ts";
import { byRef, list as page, type Listed } from "./store/queries.ts";
import { ack as acknowledge, type AckOutcome } from "./store/transitions.ts";

export { OutboxError, type Trouble } from "./core/errors.ts";
export { deliver, type DeliverOptions, type Delivery, type Handler, type HandlerInput } from "./library/deliver.ts";
export * as inbox from "./library/inbox.ts";
export type { Begun, InboxClaim } from "./library/inbox.ts";
export type {
  AckOutcome,
  Answer,
  Changed,
  ChangeFilter,
  Claim,
  ClaimedAnswer,
  ClaimOptions,
  Dispatch,
  EnqueueRequest,
  Filter,
  Listed,
  OperatorOutcome,
  Status,
};

/** How a dispatch is named: its 32-hex id, or its short number `seq` (as a number or in digits). */
export type Id = string | number;

/**
 * Adds the outbox tables to a database that has none of them. Nothing else in the file changes.
 * @throws OutboxError `no` when they are there already, or one of their names is taken by another table
 * @example install(new Database("shop.db"))
 */
export function install(db: Database): void {
  whole(db, () => addTables(db));
}

/**
 * Enters one dispatch, or answers with the first row that has its dedup key (ADR-0059 D2). `max_attempts` is 8 unless given.
 * With `claim` it is entered leased, for the program itself to `deliver` after the commit; where something is in its way it stays
 * pending for a runner, and `claim` is null.
 * @throws OutboxError `data` for a request that cannot be stored, `no` when the tables are missing, `busy` for a lock
 * @example enqueue(db, { kind: "order_paid", deliver_to: "billing", body: { order: 7 } }).id
 * @example const { claim, refusal } = enqueue(db, request, { claim: true })
 */
export function enqueue(db: Database, request: EnqueueRequest): Answer;
export function enqueue(db: Database, request: EnqueueRequest, options: ClaimOptions): ClaimedAnswer;
export function enqueue(db: Database, request: EnqueueRequest, options?: ClaimOptions): Answer | ClaimedAnswer {
  const checked = checkRequest(request);
  if (options !== undefined) checkOptions("the options of enqueue", options, CLAIM_OPTIONS);
  if (options?.claim === true) return enterClaimed(db, checked, options);
  return onOurs(db, () => enter(db, checked, hostClock.now(), hostEntropy));
}

const CLAIM_OPTIONS = { claim: boolean, lease_seconds: number, per_destination: number };
const REVIVAL_OPTIONS = { reset_epoch: number, ttl_seconds: number, max_attempts: number, not_before: time };

export interface RevivalOptions {
  /** When the seats may work again, epoch seconds; 0: not known, so the heartbeats never expire. */
  readonly reset_epoch: number;
  /** How long after that a heartbeat is still sent, in seconds; 3600 unless given. */
  readonly ttl_seconds?: number | undefined;
  readonly max_attempts?: number | undefined;
  /** When they are first sent, epoch seconds; at once unless given. */
  readonly not_before?: number | undefined;
}

/**
 * Enters one `revival_ping` for each seat, all or none (ADR-0059 D6). The same seat and reset are one dispatch.
 * @returns one answer for each seat, in the order given
 * @throws OutboxError as `enqueue`
 * @example revive(db, ["seat-1", "seat-2"], { reset_epoch: 1767225600 }).map((answer) => answer.id)
 */
export function revive(db: Database, seats: readonly string[], options: RevivalOptions): Answer[] {
  if (!Array.isArray(seats)) throw bad(`the seats are ${nameOf(seats)}, not a list`);
  checkOptions("the options of revive", options, REVIVAL_OPTIONS);
  const { reset_epoch: resetEpoch, ttl_seconds: ttlS = DEFAULT_REVIVAL_TTL_S, max_attempts: maxAttempts, not_before: notBefore } = options;
  const checked = revivalRequests(seats, { resetEpoch, ttlS, maxAttempts, notBefore }).map((request) => checkRequest(request));
  return onOurs(db, () => checked.map((request) => enter(db, request, hostClock.now(), hostEntropy)));
}

/**
 * Records that the consumer has it (ADR-0059 D5). The right token on a row already acked answers `already_acked`.
 * @throws OutboxError `data` for a token that is no text, `no` when the tables are missing, `busy` for a lock
 * @example ack(db, id, token) === "acked"
 */
export function ack(db: Database, id: Id, token: string): AckOutcome {
  const ref = refOf(id);
  checkToken(token);
  return onOurs(db, () => (ref === null ? "not_found" : acknowledge(db, ref, token, hostClock.now())));
}

/**
 * One dispatch with its envelope (`payload`, JSON text) and its tokens, or null.
 * @throws OutboxError `no` when the tables are missing
 * @example get(db, 417)?.status
 */
export function get(db: Database, id: Id): Dispatch | null {
  const ref = refOf(id);
  return reading(db, () => (ref === null ? null : byRef(db, ref)));
}

/** Which dispatches `list` tells, and how many of them. */
export interface ListFilter extends Filter {
  /** At most so many, 50 unless given; 0: all. */
  readonly limit?: number | undefined;
  readonly oldest_first?: boolean | undefined;
  /** The last `seq` of the page before. */
  readonly after?: number | undefined;
}

/**
 * Dispatches in the order in which they were committed, newest first unless told; without payload and tokens.
 * @throws OutboxError `data` for a filter that is none or an empty list, an unknown status or reason, or a limit that is no count, `no` when the tables are missing
 * @example list(db, { status: "dead_letter", limit: 10 })
 */
export function list(db: Database, filter: ListFilter = {}): Listed[] {
  checkOptions("the filters", filter, { ...FILTERS, limit: wholeNumber, oldest_first: boolean, after: wholeNumber });
  const { limit = 50, oldest_first: oldestFirst = false, after, ...rest } = filter;
  const selection = selectionOf(rest);
  return reading(db, () => page(db, { selection, limit, oldestFirst, after: after ?? null }));
}

/**
 * How many dispatches have not come to their end at this moment: those that wait, for whatever they wait, and those under a lease
 * (ADR-003). It reads a counter, so it costs microseconds however many there are; inside a transaction it sees that transaction's.
 * @throws OutboxError `no` when the tables are missing
 * @example if (countPending(db) > 1_000) throw new Error("nobody drains the outbox");
 */
export function countPending(db: Database): number {
  return reading(db, () => depth(db));
}

export interface OperatorOptions {
  /** Who does it, for history and audit; `library` unless given. */
  readonly actor?: string | undefined;
  /** Answer what would happen, change nothing. */
  readonly dry_run?: boolean | undefined;
}

export interface RetryOptions extends OperatorOptions {
  /** When it is due again, epoch seconds; at once unless given. */
  readonly not_before?: number | undefined;
  /** The new expiry, epoch seconds; the old one stays unless given, and must not have passed. */
  readonly expires_at?: number | undefined;
}

const OPERATOR_OPTIONS = { actor: text, dry_run: boolean };

/**
 * Puts a dead or expired dispatch back: pending, attempt 0, error cleared (ADR-0059 D6). Or all that a filter names, the oldest
 * first, their errors kept; all of them in one transaction. Audited.
 * @returns `changed` with the row as it was before, or why not; of a filter how many
 * @throws OutboxError `data` for a filter or an option that is none or holds what it cannot, or a filter that names nothing; `no`
 *   when the tables are missing, `busy` for a lock
 * @example retry(db, 417).outcome === "changed"
 * @example retry(db, { deliver_to: "billing", reason: "max_attempts" }).changed
 */
export function retry(db: Database, id: Id, options?: RetryOptions): OperatorOutcome;
export function retry(db: Database, filter: ChangeFilter, options?: RetryOptions): Changed;
export function retry(db: Database, which: Id | ChangeFilter, options: RetryOptions = {}): OperatorOutcome | Changed {
  checkOptions("the options of retry", options, { ...OPERATOR_OPTIONS, not_before: time, expires_at: time });
  const { not_before: dueAt = null, expires_at: expiresAt = null } = options;
  if (isFilter(which)) return changeBy(db, which, { verb: "retry", dueAt, gapS: 0, expiresAt }, options);
  return operate(db, which, options, (ref, operation) => putBack(db, ref, { ...operation, dueAt: dueAt ?? operation.now, expiresAt }));
}

/**
 * Ends a pending dispatch, or one whose runner vanished, as expired. Or all that a filter names. Audited.
 * @returns `changed` with the row as it was before, or why not; of a filter how many
 * @throws OutboxError as `retry`
 * @example cancel(db, id, { actor: "nightly cleanup" })
 * @example cancel(db, { kind: "heartbeat", before: yesterday })
 */
export function cancel(db: Database, id: Id, options?: OperatorOptions): OperatorOutcome;
export function cancel(db: Database, filter: ChangeFilter, options?: OperatorOptions): Changed;
export function cancel(db: Database, which: Id | ChangeFilter, options: OperatorOptions = {}): OperatorOutcome | Changed {
  checkOptions("the options of cancel", options, OPERATOR_OPTIONS);
  if (isFilter(which)) return changeBy(db, which, { verb: "cancel" }, options);
  return operate(db, which, options, (ref, operation) => end(db, ref, operation));
}

export interface PurgeOptions extends OperatorOptions {
  /** Also a row whose command runs. */
  readonly force?: boolean | undefined;
}

/**
 * Deletes a dispatch of any status with its history and its dedup key. Or all that a filter names: of those that have come to their
 * end, unless it names a status. Audited.
 * @returns `changed` with the row as it was, or why not; of a filter how many
 * @throws OutboxError as `retry`
 * @example purge(db, id).outcome === "changed"
 * @example purge(db, { status: "delivered", before: lastMonth })
 */
export function purge(db: Database, id: Id, options?: PurgeOptions): OperatorOutcome;
export function purge(db: Database, filter: ChangeFilter, options?: PurgeOptions): Changed;
export function purge(db: Database, which: Id | ChangeFilter, options: PurgeOptions = {}): OperatorOutcome | Changed {
  checkOptions("the options of purge", options, { ...OPERATOR_OPTIONS, force: boolean });
  const force = options.force === true;
  if (isFilter(which)) return changeBy(db, which, { verb: "purge", force }, options);
  return operate(db, which, options, (ref, operation) => remove(db, ref, { ...operation, force }));
}

/** A list or null is neither: it is refused as an id that is none. */
function isFilter(which: Id | ChangeFilter): which is ChangeFilter {
  return typeof which === "object" && which !== null && !Array.isArray(which);
}

interface Operation {
  readonly now: number;
  readonly actor: string;
  readonly dryRun: boolean;
}

function operate(
  db: Database,
  id: Id,
  options: OperatorOptions,
  change: (ref: DispatchRef, operation: Operation) => OperatorOutcome,
): OperatorOutcome {
  const ref = refOf(id);
  const { actor = "library", dry_run: dryRun = false } = options;
  return onOurs(db, () => (ref === null ? { outcome: "not_found" } : change(ref, { now: hostClock.now(), actor, dryRun })));
}
