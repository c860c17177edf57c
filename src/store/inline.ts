/** Entering a dispatch claimed, for the program that enters it to send it itself (ADR-003). */
import type { Answer, Dispatch } from "../core/dispatch.ts";
import type { CheckedRequest } from "../core/request.ts";
import type { Entropy } from "../core/seams.ts";
import { claimThis, type ClaimTerms, type Refusal, refusalOf } from "./claim.ts";
import { enqueue } from "./enqueue.ts";
import { endHolds } from "./gates.ts";
import type { Handle } from "./statement.ts";

/** A row that was entered for its own program: claimed, or why not. */
export interface Inline {
  readonly answer: Answer;
  /** The row, leased; null: it stays pending for a runner. */
  readonly claim: Dispatch | null;
  /** Null when it was claimed. */
  readonly refusal: Refusal | "duplicate" | null;
}

/**
 * Enters one dispatch and puts exactly that row through the guards of every claim, in the caller's transaction: so the program that
 * entered it may send it itself, and takes no turn, slot or probe that is another's (ADR-003).
 * @param terms of the claim; it is due now or not at all
 */
export function enqueueClaimed(
  db: Handle,
  request: CheckedRequest,
  terms: Omit<ClaimTerms, "dueBy" | "inHand" | "alive">,
  entropy: Entropy,
): Inline {
  const answer = enqueue(db, request, terms.now, entropy);
  if (answer.outcome === "duplicate") return { answer, claim: null, refusal: "duplicate" };
  endHolds(db, terms.now);
  // It is due at its creation, which is rounded to the millisecond: perhaps up.
  const now = Math.max(terms.now, Math.round(terms.now * 1_000) / 1_000);
  const all = { ...terms, now, dueBy: now, inHand: [], alive: [] };
  const claim = claimThis(db, answer.seq, all, entropy.token());
  if (claim === null) return { answer, claim, refusal: refusalOf(db, answer.seq, all) };
  const { status, attempt, next_attempt_at } = claim;
  return { answer: { ...answer, status, attempt, next_attempt_at }, claim, refusal: null };
}
