/**
 * What a consumer has handled, for programs that handle each message once (ADR-003, consumer-side inbox). Work is begun, and then
 * completed or abandoned: all in one transaction with the changes that the work makes, or around work that takes its time.
 *
 * @example
 * // In one transaction: the changes and the mark commit together, and a rollback abandons both.
 * db.transaction(() => {
 *   const begun = inbox.begin(db, "billing", id);
 *   if (begun.outcome !== "begun") return;
 *   db.run("UPDATE accounts SET balance = balance - 5 WHERE id = 7");
 *   inbox.complete(db, begun.claim);
 * }).immediate();
 * @example
 * // Around an await, in no transaction: a crash before `complete` lets it happen again.
 * const begun = inbox.begin(db, "mail", id);
 * if (begun.outcome === "begun") {
 *   try {
 *     await send(message);
 *   } catch (error) {
 *     inbox.abandon(db, begun.claim);
 *     throw error;
 *   }
 *   inbox.complete(db, begun.claim);
 * }
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Begun, type InboxClaim } from "../store/inbox.js";
export type { Begun, InboxClaim } from "../store/inbox.js";
/**
 * Begins work at a message, in the caller's transaction or in one of its own. The entry of a process of this host that has ended is
 * taken over, that of another host after a day.
 * @param consumer who handles it, at most 255 bytes: each consumer handles each message once
 * @param id 32 hex digits, also of a dispatch in another database; or the number of one in this
 * @returns `begun` with a claim; `duplicate` when its success is recorded; `held` when somebody works at it, also in this process
 * @throws OutboxError `data` for a consumer or id that is none, `no` when there is no such number or the tables are missing, `busy` for a lock
 * @example if (inbox.begin(db, "billing", id).outcome === "duplicate") return;
 */
export declare function begin(db: Database, consumer: string, id: string | number): Begun;
/**
 * Records the success: whoever asks for the same message from then on gets `duplicate`.
 * @returns `lost` when the claim has no entry any more (rolled back, taken over, ended before): then nothing changes
 * @throws OutboxError `data` for what is no claim, `no` when the tables are missing, `busy` for a lock
 * @example inbox.complete(db, claim) === "completed"
 */
export declare function complete(db: Database, claim: InboxClaim): "completed" | "lost";
/**
 * Gives it back: the next who asks begins anew.
 * @returns `lost` as `complete`
 * @throws OutboxError as `complete`
 * @example inbox.abandon(db, claim) === "abandoned"
 */
export declare function abandon(db: Database, claim: InboxClaim): "abandoned" | "lost";
