/** The world, as the rest of the program is allowed to see it. `host.ts` holds the real ones; tests pass their own. */

export interface Clock {
  /** Wall clock: epoch seconds, to the millisecond. Due times and leases use it. */
  now(): number;
  /** Monotonic clock in milliseconds. Timeouts use it. */
  monotonicMs(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts; 0 lets the event loop turn once. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Local time: seconds to add to UTC at the given instant (epoch seconds). */
export interface Zone {
  utcOffsetS(epochS: number): number;
}

export interface Entropy {
  /** A time-ordered UUID in 32 hex digits: the id of a dispatch. */
  id(): string;
  /** A random UUID with hyphens: the id of the envelope. */
  signalId(): string;
  /** 128 random bits in 32 hex digits: a lock token or an acknowledgement token. */
  token(): string;
  /** Uniform in [0, 1). */
  random(): number;
}

/**
 * What can be told of a process from here. `unknown`: it is one of another host, or of this machine under an earlier name, or what
 * is seen of it does not tell it from one that came later.
 */
export type Standing = "alive" | "gone" | "unknown";
