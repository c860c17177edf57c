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
import { consumerProblem } from "../core/consumer.ts";
import { OutboxError } from "../core/errors.ts";
import { hostClock, hostEntropy, ownHolder, standingOf } from "../host.ts";
import { abandon as giveBack, begin as beginWork, type Begun, complete as record, idOf, type InboxClaim } from "../store/inbox.ts";
import { onOurs } from "./handle.ts";
import { bad, nameOf, refOf } from "./input.ts";

export type { Begun, InboxClaim } from "../store/inbox.ts";

/**
 * Begins work at a message, in the caller's transaction or in one of its own. The entry of a process of this host that has ended is
 * taken over, that of another host after a day.
 * @param consumer who handles it, at most 255 bytes: each consumer handles each message once
 * @param id 32 hex digits, also of a dispatch in another database; or the number of one in this
 * @returns `begun` with a claim; `duplicate` when its success is recorded; `held` when somebody works at it, also in this process
 * @throws OutboxError `data` for a consumer or id that is none, `no` when there is no such number or the tables are missing, `busy` for a lock
 * @example if (inbox.begin(db, "billing", id).outcome === "duplicate") return;
 */
export function begin(db: Database, consumer: string, id: string | number): Begun {
  const problem = typeof consumer === "string" ? consumerProblem(consumer) : `is ${nameOf(consumer)}, not a text`;
  if (problem !== null) throw bad(`the consumer ${problem}`);
  const ref = refOf(id);
  if (ref === null) throw bad(`the id "${id}" is none`, "it is 32 hex digits, or the number of a dispatch in this database");
  return onOurs(db, () => {
    const found = idOf(db, ref);
    if (found === null)
      throw new OutboxError("no", `there is no dispatch ${id} in ${db.filename}`, "name one of another database by its 32 hex digits");
    const terms = { now: hostClock.now(), holder: ownHolder(), token: hostEntropy.token(), standing: standingOf };
    return beginWork(db, { consumer, id: found }, terms);
  });
}

/**
 * Records the success: whoever asks for the same message from then on gets `duplicate`.
 * @returns `lost` when the claim has no entry any more (rolled back, taken over, ended before): then nothing changes
 * @throws OutboxError `data` for what is no claim, `no` when the tables are missing, `busy` for a lock
 * @example inbox.complete(db, claim) === "completed"
 */
export function complete(db: Database, claim: InboxClaim): "completed" | "lost" {
  checkClaim(claim);
  return onOurs(db, () => record(db, claim, hostClock.now()));
}

/**
 * Gives it back: the next who asks begins anew.
 * @returns `lost` as `complete`
 * @throws OutboxError as `complete`
 * @example inbox.abandon(db, claim) === "abandoned"
 */
export function abandon(db: Database, claim: InboxClaim): "abandoned" | "lost" {
  checkClaim(claim);
  return onOurs(db, () => giveBack(db, claim));
}

function checkClaim(claim: InboxClaim): void {
  const isOne =
    typeof claim === "object" &&
    claim !== null &&
    [claim.consumer, claim.dispatch_id, claim.token].every((part) => typeof part === "string");
  if (!isOne) throw bad("the claim is none", "it is the `claim` of what inbox.begin answers when it has begun");
}
