/**
 * Renewal: while a command runs its lease is renewed every third of it, so that a lease only ends where its runner is gone,
 * frozen or cut off. At once when the wall clock moved against the monotonic one: leases live on the wall clock.
 */
import type { Dispatch } from "../core/dispatch.ts";
import type { Clock } from "../core/seams.ts";
import type { Renewal } from "../store/store.ts";

export interface Leases {
  /** A command starts: its lease is minded from now on, until the command's own time is over. */
  mind(claim: Dispatch, leaseS: number, ownTimeMs: number): void;
  forget(seq: number): void;
  /** What wants another lease now. */
  due(): readonly Renewal[];
  /** Answers to `due`, in its order. A lost one is not asked for again: its command changes nothing any more. */
  answered(renewals: readonly Renewal[], kept: readonly boolean[]): void;
  /** Milliseconds until the next renewal; Infinity when none is to come. */
  nextInMs(): number;
}

/** A wall clock that moved by more than this against the monotonic one was set, or slept. */
const STEP_MS = 1_000;

interface Minded {
  readonly renewal: Renewal;
  readonly againAtMs: number;
  readonly untilMs: number;
}

export function leases(clock: Clock): Leases {
  const minded = new Map<number, Minded>();
  let offsetMs = clock.now() * 1_000 - clock.monotonicMs();
  const wanted = (): Minded[] => [...minded.values()].filter(({ untilMs }) => untilMs > clock.monotonicMs());
  return {
    mind(claim, leaseS, ownTimeMs) {
      const nowMs = clock.monotonicMs();
      const renewal = { seq: claim.seq, lockToken: claim.lock_token ?? "", leaseS };
      minded.set(claim.seq, { renewal, againAtMs: nowMs + (leaseS * 1_000) / 3, untilMs: nowMs + ownTimeMs });
    },
    forget: (seq) => void minded.delete(seq),
    due() {
      const nowMs = clock.monotonicMs();
      const stepped = clock.now() * 1_000 - nowMs;
      if (Math.abs(stepped - offsetMs) > STEP_MS) {
        offsetMs = stepped;
        // Remembered with each, because this renewal may fail.
        for (const [seq, entry] of minded) minded.set(seq, { ...entry, againAtMs: nowMs });
      }
      return wanted()
        .filter(({ againAtMs }) => againAtMs <= nowMs)
        .map(({ renewal }) => renewal);
    },
    answered(renewals, kept) {
      const nowMs = clock.monotonicMs();
      for (const [index, renewal] of renewals.entries()) {
        const entry = minded.get(renewal.seq);
        if (entry === undefined || entry.renewal.lockToken !== renewal.lockToken) continue;
        if (kept[index] === true) minded.set(renewal.seq, { ...entry, againAtMs: nowMs + (renewal.leaseS * 1_000) / 3 });
        else minded.delete(renewal.seq);
      }
    },
    nextInMs: () => Math.min(...wanted().map(({ againAtMs }) => Math.max(0, againAtMs - clock.monotonicMs())), Number.POSITIVE_INFINITY),
  };
}
