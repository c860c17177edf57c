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
import type { Answer, Dispatch } from "./core/dispatch.js";
import type { Status } from "./core/lifecycle.js";
import { type EnqueueRequest } from "./core/request.js";
import { type Claim, type ClaimedAnswer, type ClaimOptions } from "./library/claim.js";
import { type Changed, type ChangeFilter, type Filter } from "./library/filter.js";
import { type OperatorOutcome } from "./store/operator.js";
import { type Listed } from "./store/queries.js";
import { type AckOutcome } from "./store/transitions.js";
export { OutboxError, type Trouble } from "./core/errors.js";
export { deliver, type DeliverOptions, type Delivery, type Handler, type HandlerInput } from "./library/deliver.js";
export * as inbox from "./library/inbox.js";
export type { Begun, InboxClaim } from "./library/inbox.js";
export type { AckOutcome, Answer, Changed, ChangeFilter, Claim, ClaimedAnswer, ClaimOptions, Dispatch, EnqueueRequest, Filter, Listed, OperatorOutcome, Status, };
/** How a dispatch is named: its 32-hex id, or its short number `seq` (as a number or in digits). */
export type Id = string | number;
/**
 * Adds the outbox tables to a database that has none of them. Nothing else in the file changes.
 * @throws OutboxError `no` when they are there already, or one of their names is taken by another table
 * @example install(new Database("shop.db"))
 */
export declare function install(db: Database): void;
/**
 * Enters one dispatch, or answers with the first row that has its dedup key (ADR-0059 D2). `max_attempts` is 8 unless given.
 * With `claim` it is entered leased, for the program itself to `deliver` after the commit; where something is in its way it stays
 * pending for a runner, and `claim` is null.
 * @throws OutboxError `data` for a request that cannot be stored, `no` when the tables are missing, `busy` for a lock
 * @example enqueue(db, { kind: "order_paid", deliver_to: "billing", body: { order: 7 } }).id
 * @example const { claim, refusal } = enqueue(db, request, { claim: true })
 */
export declare function enqueue(db: Database, request: EnqueueRequest): Answer;
export declare function enqueue(db: Database, request: EnqueueRequest, options: ClaimOptions): ClaimedAnswer;
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
export declare function revive(db: Database, seats: readonly string[], options: RevivalOptions): Answer[];
/**
 * Records that the consumer has it (ADR-0059 D5). The right token on a row already acked answers `already_acked`.
 * @throws OutboxError `data` for a token that is no text, `no` when the tables are missing, `busy` for a lock
 * @example ack(db, id, token) === "acked"
 */
export declare function ack(db: Database, id: Id, token: string): AckOutcome;
/**
 * One dispatch with its envelope (`payload`, JSON text) and its tokens, or null.
 * @throws OutboxError `no` when the tables are missing
 * @example get(db, 417)?.status
 */
export declare function get(db: Database, id: Id): Dispatch | null;
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
export declare function list(db: Database, filter?: ListFilter): Listed[];
/**
 * How many dispatches have not come to their end at this moment: those that wait, for whatever they wait, and those under a lease
 * (ADR-003). It reads a counter, so it costs microseconds however many there are; inside a transaction it sees that transaction's.
 * @throws OutboxError `no` when the tables are missing
 * @example if (countPending(db) > 1_000) throw new Error("nobody drains the outbox");
 */
export declare function countPending(db: Database): number;
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
/**
 * Puts a dead or expired dispatch back: pending, attempt 0, error cleared (ADR-0059 D6). Or all that a filter names, the oldest
 * first, their errors kept; all of them in one transaction. Audited.
 * @returns `changed` with the row as it was before, or why not; of a filter how many
 * @throws OutboxError `data` for a filter or an option that is none or holds what it cannot, or a filter that names nothing; `no`
 *   when the tables are missing, `busy` for a lock
 * @example retry(db, 417).outcome === "changed"
 * @example retry(db, { deliver_to: "billing", reason: "max_attempts" }).changed
 */
export declare function retry(db: Database, id: Id, options?: RetryOptions): OperatorOutcome;
export declare function retry(db: Database, filter: ChangeFilter, options?: RetryOptions): Changed;
/**
 * Ends a pending dispatch, or one whose runner vanished, as expired. Or all that a filter names. Audited.
 * @returns `changed` with the row as it was before, or why not; of a filter how many
 * @throws OutboxError as `retry`
 * @example cancel(db, id, { actor: "nightly cleanup" })
 * @example cancel(db, { kind: "heartbeat", before: yesterday })
 */
export declare function cancel(db: Database, id: Id, options?: OperatorOptions): OperatorOutcome;
export declare function cancel(db: Database, filter: ChangeFilter, options?: OperatorOptions): Changed;
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
export declare function purge(db: Database, id: Id, options?: PurgeOptions): OperatorOutcome;
export declare function purge(db: Database, filter: ChangeFilter, options?: PurgeOptions): Changed;
