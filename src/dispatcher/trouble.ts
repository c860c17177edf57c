/** A database that does not answer: since when, whether it was told, how long until the next try, when it is time to go without. */
import type { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";

export interface Trouble {
  met(error: OutboxError): void;
  /** The database answers. */
  over(): void;
  /** What was met last; null when there is none. */
  error(): OutboxError | null;
  /** Since when it lasts, on the monotonic clock; null when there is none. */
  sinceMs(): number | null;
  /** How long to sleep before the next try: longer with every failure in a row. */
  waitMs(longestMs: number): number;
}

/** A lock that others keep for a moment is everyday life. */
const LOCK_WORTH_TELLING_MS = 5_000;
const FIRST_WAIT_MS = 100;

export interface TroubleTold {
  /** It lasts long enough to be told. Called at every failure from then on. */
  begins(error: OutboxError): void;
  ends(): void;
}

export function trouble(clock: Clock, tell: TroubleTold): Trouble {
  let sinceMs: number | null = null;
  let last: OutboxError | null = null;
  let failures = 0;
  let first = true;
  return {
    met(error) {
      failures += 1;
      sinceMs ??= clock.monotonicMs();
      last = error;
      if (error.kind !== "busy" || clock.monotonicMs() - sinceMs >= LOCK_WORTH_TELLING_MS) tell.begins(error);
    },
    over() {
      // Always, not only after trouble of our own: another runner may have told of it.
      if (last !== null || first) tell.ends();
      first = false;
      last = null;
      sinceMs = null;
      failures = 0;
    },
    error: () => last,
    sinceMs: () => sinceMs,
    waitMs: (longestMs) => Math.min(FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 20), longestMs),
  };
}

/** How long each outcome may take to be written once the runner is stopped (DESIGN section 8). */
const LAST_SETTLE_MS = 5_000;
/** How long a runner that is to end waits for a lock with nothing in hand. */
const PATIENCE_WITH_LOCK_MS = 30_000;
/** How long it keeps outcomes that a lock keeps from being written. Afterwards they are sent again: at least once. */
const PATIENCE_WITH_LOCK_AND_OUTCOMES_MS = 300_000;
/** The same for a full disk, an I/O error, a refused statement: cron starts the next runner, which finds the same. */
const PATIENCE_WITH_OUTCOMES_MS = 30_000;

/**
 * How long trouble may last before a runner that is to end goes without having written everything.
 * @param unwritten whether it has outcomes that are not written
 * @param stopped whether it was told to stop; else it ends because it has drained what was due
 */
export function patienceMs(error: OutboxError, unwritten: boolean, stopped: boolean): number {
  if (stopped) return unwritten ? LAST_SETTLE_MS : 0;
  if (error.kind === "busy") return unwritten ? PATIENCE_WITH_LOCK_AND_OUTCOMES_MS : PATIENCE_WITH_LOCK_MS;
  return unwritten ? PATIENCE_WITH_OUTCOMES_MS : 0;
}
