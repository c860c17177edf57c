/** Entering a dispatch leased, for the program that enters it (ADR-003, dual dispatch). */
import type { Database } from "bun:sqlite";
import type { Answer, Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import type { CheckedRequest } from "../core/request.ts";
import { enqueueClaimed } from "../store/inline.ts";
import type { Refusal } from "../store/claim.ts";
import { onOurs } from "./handle.ts";
import { HERE } from "./place.ts";

export interface ClaimOptions {
  readonly claim: true;
  /** How long it is the program's own, in seconds; 15 unless given. `deliver` begins within it, and renews it from then on. */
  readonly lease_seconds?: number | undefined;
  /** How many may be under way to its destination, over all runners and programs; 4 unless given. */
  readonly per_destination?: number | undefined;
}

/** A dispatch in the hands of the program that entered it. */
export interface Claim {
  readonly dispatch: Dispatch;
  readonly lease_seconds: number;
}

export interface ClaimedAnswer extends Answer {
  /** For `deliver`, after the commit. Null: it stays pending for a runner, or is the row of somebody else. */
  readonly claim: Claim | null;
  /** What was in its way; null when it was claimed. */
  readonly refusal: Refusal | "duplicate" | null;
}

const DEFAULT_LEASE_S = 15;
const DEFAULT_PER_DESTINATION = 4;
const LONGEST_LEASE_S = 86_400;

/** Enters and claims, in the caller's transaction or one of its own. @internal */
export function enterClaimed(db: Database, request: CheckedRequest, options: ClaimOptions, place = HERE): ClaimedAnswer {
  const { lease_seconds: leaseS = DEFAULT_LEASE_S, per_destination: perDestination = DEFAULT_PER_DESTINATION } = options;
  if (!(leaseS > 0 && leaseS <= LONGEST_LEASE_S))
    throw new OutboxError("data", `lease_seconds is not a number of seconds from above 0 to ${LONGEST_LEASE_S}`);
  if (!Number.isSafeInteger(perDestination) || perDestination < 1)
    throw new OutboxError("data", "per_destination is not a whole number, 1 or more");
  const terms = { holder: place.holder(), fallbackLeaseS: leaseS, kinds: new Map<string, number>(), perDestination, circuits: true };
  return onOurs(db, () => {
    const { answer, claim, refusal } = enqueueClaimed(db, request, { ...terms, now: place.clock.now() }, place.entropy);
    return { ...answer, claim: claim === null ? null : { dispatch: claim, lease_seconds: leaseS }, refusal };
  });
}
