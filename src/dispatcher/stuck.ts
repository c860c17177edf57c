/**
 * Outcomes that the database refuses while it takes others: a row that somebody changed by hand, a trigger of the program whose
 * file it is. Each is kept and tried again in a commit of its own, so that it keeps no other outcome from being written. Its slot
 * stays taken meanwhile.
 */
import type { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Settlement } from "../store/store.ts";

export interface Stuck {
  /** Keeps an outcome that was refused; the oftener it was, the longer until its next try. Answers whether it is new here. */
  keep(settlement: Settlement, error: OutboxError): "new" | "known";
  /** Takes out what may be tried again. */
  due(): readonly Settlement[];
  /** Everything that is kept. */
  settlements(): readonly Settlement[];
  /** What the first of them is refused with, and since when, on the monotonic clock; null when nothing is kept. */
  first(): { readonly error: OutboxError; readonly sinceMs: number } | null;
  /** Milliseconds until the next try; Infinity when nothing is kept. */
  againInMs(): number;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

interface Held {
  readonly settlement: Settlement;
  readonly error: OutboxError;
  readonly sinceMs: number;
  readonly waitMs: number;
  readonly againAtMs: number;
}

export function stuck(clock: Clock): Stuck {
  let held: readonly Held[] = [];
  const known = new WeakMap<Settlement, Held>();
  return {
    keep(settlement, error) {
      const nowMs = clock.monotonicMs();
      const before = known.get(settlement);
      const waitMs = before === undefined ? FIRST_WAIT_MS : Math.min(2 * before.waitMs, LONGEST_WAIT_MS);
      const kept = { settlement, error, sinceMs: before?.sinceMs ?? nowMs, waitMs, againAtMs: nowMs + waitMs };
      known.set(settlement, kept);
      held = [...held, kept];
      return before === undefined ? "new" : "known";
    },
    due() {
      const nowMs = clock.monotonicMs();
      const due = held.filter(({ againAtMs }) => againAtMs <= nowMs);
      held = held.filter(({ againAtMs }) => againAtMs > nowMs);
      return due.map(({ settlement }) => settlement);
    },
    settlements: () => held.map(({ settlement }) => settlement),
    first: () => held[0] ?? null,
    againInMs: () => Math.min(...held.map(({ againAtMs }) => Math.max(0, againAtMs - clock.monotonicMs())), Number.POSITIVE_INFINITY),
  };
}
