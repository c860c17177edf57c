/** A consumer's inbox as the rest of the program knows it: asynchronous, every method one transaction. Apart from `store.ts`, which loads all else. */
import type { DispatchRef } from "../core/dispatch.ts";
import type { Clock, Entropy } from "../core/seams.ts";
import { troubleOf } from "./failed.ts";
import { abandon, begin, type Begun, type BeginTerms, complete, idOf, type InboxClaim } from "./inbox.ts";
import { openDatabase, type OpenTerms } from "./open.ts";
import { immediately } from "./transaction.ts";

export type { Begun, InboxClaim } from "./inbox.ts";

export interface Inbox {
  /** Begins work at a message. Null: there is no dispatch of this number. */
  begin(consumer: string, ref: DispatchRef, terms: Pick<BeginTerms, "holder" | "standing">): Promise<Begun | null>;
  /** Records that the work succeeded; durable when it answers. `lost`: the entry is not the claim's any more, and nothing changed. */
  complete(claim: InboxClaim): Promise<"completed" | "lost">;
  /** Gives it back. */
  abandon(claim: InboxClaim): Promise<"abandoned" | "lost">;
  close(): void;
}

/** @throws OutboxError */
export async function openInbox(
  terms: OpenTerms,
  { clock, entropy }: { readonly clock: Clock; readonly entropy: Entropy },
): Promise<Inbox> {
  const db = await openDatabase(terms);
  const transact = async <T>(body: () => T): Promise<T> => {
    try {
      return immediately(db, body);
    } catch (error) {
      throw await troubleOf(error, terms.path);
    }
  };
  return {
    begin: (consumer, ref, { holder, standing }) =>
      transact(() => {
        const id = idOf(db, ref);
        return id === null ? null : begin(db, { consumer, id }, { holder, standing, now: clock.now(), token: entropy.token() });
      }),
    complete: (claim) => transact(() => complete(db, claim, clock.now())),
    abandon: (claim) => transact(() => abandon(db, claim)),
    close: () => db.close(),
  };
}
