/** How long a failed dispatch waits. Answers "why was it retried in 40 s". */
import { OutboxError } from "./errors.ts";

export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
  /** 0 to 1: the wait is multiplied by a random factor in [1 - jitter, 1 + jitter] before the cap. */
  readonly jitter: number;
}

/** DESIGN: 60, 120, 240, 480, 960, 1800 s without jitter (ADR-0059 D4), spread by a fifth. */
export const DEFAULT_BACKOFF: Backoff = { baseMs: 30_000, maxMs: 1_800_000, jitter: 0.2 };

/** What the library and the SQL door use, which see no settings (ADR-0059 D2). */
export const DEFAULT_MAX_ATTEMPTS = 8;

/** More sends than this are a typing error. */
export const MAX_ATTEMPTS_LIMIT = 1_000_000;

/**
 * The wait after attempt `attempt`, in milliseconds: `min(base * 2^attempt * U(1-jitter, 1+jitter), max)`.
 * The jitter comes before the cap, so rows that have reached the cap stay in step with it, never above it.
 * @param random uniform in [0, 1)
 */
export function backoffMs(attempt: number, backoff: Backoff, random: number): number {
  // 2^60 ms is beyond every cap, and a larger power times a base of 0 would be NaN.
  const grown = backoff.baseMs * 2 ** Math.min(attempt, 60);
  const spread = 1 - backoff.jitter + 2 * backoff.jitter * random;
  return Math.min(grown * spread, backoff.maxMs);
}

/**
 * How many attempts a dispatch needs so that it is still being tried `retryForMs` after its first failure: the smallest
 * number whose waits, without jitter, add up to at least that.
 * @example attemptsFor(3 * 86_400_000, DEFAULT_BACKOFF) === 149
 * @throws OutboxError `settings` when the waits never add up (base 0) or need more than MAX_ATTEMPTS_LIMIT
 */
export function attemptsFor(retryForMs: number, backoff: Backoff): number {
  const still = { ...backoff, jitter: 0 };
  let waited = 0;
  let waits = 0;
  while (waited < retryForMs) {
    const wait = backoffMs(waits + 1, still, 0);
    if (wait === 0)
      throw new OutboxError(
        "settings",
        "retry_for needs a backoff that waits",
        "set backoff.base and backoff.max above 0, or use max_attempts",
      );
    if (wait === backoff.maxMs) {
      waits += Math.ceil((retryForMs - waited) / wait);
      break;
    }
    waited += wait;
    waits += 1;
  }
  if (waits >= MAX_ATTEMPTS_LIMIT)
    throw new OutboxError(
      "settings",
      `retry_for would take ${waits + 1} attempts`,
      `raise backoff.base or backoff.max; at most ${MAX_ATTEMPTS_LIMIT} attempts are allowed`,
    );
  return waits + 1;
}
