/** Revival heartbeats: one `revival_ping` for each seat, so that something wakes it after its limit was reset (ADR-0059 D6). */
import { OutboxError } from "./errors.ts";
import type { EnqueueRequest } from "./request.ts";
import { textProblem } from "./text.ts";
import { MAX_TIME } from "./time.ts";

/** How long a heartbeat is worth sending after the reset, in seconds, unless told (ADR-0059 D6). */
export const DEFAULT_REVIVAL_TTL_S = 3_600;

export interface RevivalTerms {
  /** When the seats may work again, epoch seconds; 0: not known, so the heartbeats never expire. */
  readonly resetEpoch: number;
  /** How long after that a heartbeat is still sent, in seconds. */
  readonly ttlS: number;
  readonly maxAttempts?: number | undefined;
  /** Epoch seconds; due at once unless told. */
  readonly notBefore?: number | undefined;
}

/** Longest seat, in bytes of UTF-8: its dedup key has room for it and the number. */
const SEAT_LIMIT = 960;

/**
 * The requests, one for each seat, in the order given. The same seat and reset are one dispatch, by their dedup key. An expiry
 * that has passed already is accepted like any other: a late cron job is no error, its heartbeat ends as expired.
 * @throws OutboxError `data`
 * @example revivalRequests(["seat-1"], { resetEpoch: 1767225600, ttlS: 3600 })[0]?.dedup_key === "revival:seat-1:1767225600"
 */
export function revivalRequests(seats: readonly string[], terms: RevivalTerms): EnqueueRequest[] {
  const { resetEpoch, ttlS, maxAttempts, notBefore } = terms;
  if (typeof resetEpoch !== "number" || !(resetEpoch >= 0 && resetEpoch <= MAX_TIME))
    throw new OutboxError("data", "reset_epoch is not a time in epoch seconds between 1970 and 9999", "use 0 when the reset is not known");
  if (typeof ttlS !== "number" || !(ttlS >= 0 && ttlS <= MAX_TIME))
    throw new OutboxError("data", "the ttl is not a number of seconds, 0 or more");
  return seats.map((seat) => {
    const problem = typeof seat === "string" ? textProblem(seat, SEAT_LIMIT) : "is not a text";
    if (problem !== null) throw new OutboxError("data", `the seat ${problem}`, "a seat is the destination of its heartbeats");
    return {
      kind: "revival_ping",
      deliver_to: seat,
      body: { reset_epoch: resetEpoch },
      // A number prints in its shortest form, so 1767225600.0 and 1767225600 are one key.
      dedup_key: `revival:${seat}:${resetEpoch}`,
      expires_at: resetEpoch === 0 ? undefined : Math.min(resetEpoch + ttlS, MAX_TIME),
      max_attempts: maxAttempts,
      not_before: notBefore,
    };
  });
}
