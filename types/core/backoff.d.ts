export interface Backoff {
    readonly baseMs: number;
    readonly maxMs: number;
    /** 0 to 1: the wait is multiplied by a random factor in [1 - jitter, 1 + jitter] before the cap. */
    readonly jitter: number;
}
/** DESIGN: 60, 120, 240, 480, 960, 1800 s without jitter (ADR-0059 D4), spread by a fifth. */
export declare const DEFAULT_BACKOFF: Backoff;
/** What the library and the SQL door use, which see no settings (ADR-0059 D2). */
export declare const DEFAULT_MAX_ATTEMPTS = 8;
/** More sends than this are a typing error. */
export declare const MAX_ATTEMPTS_LIMIT = 1000000;
/**
 * The wait after attempt `attempt`, in milliseconds: `min(base * 2^attempt * U(1-jitter, 1+jitter), max)`.
 * The jitter comes before the cap, so rows that have reached the cap stay in step with it, never above it.
 * @param random uniform in [0, 1)
 */
export declare function backoffMs(attempt: number, backoff: Backoff, random: number): number;
/**
 * How many attempts a dispatch needs so that it is still being tried `retryForMs` after its first failure: the smallest
 * number whose waits, without jitter, add up to at least that.
 * @example attemptsFor(3 * 86_400_000, DEFAULT_BACKOFF) === 149
 * @throws OutboxError `settings` when the waits never add up (base 0) or need more than MAX_ATTEMPTS_LIMIT
 */
export declare function attemptsFor(retryForMs: number, backoff: Backoff): number;
