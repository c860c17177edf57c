/** What a runner tells, and the five counters that it keeps (ADR-0059 D4). */
import type { Dispatch } from "../core/dispatch.ts";
import type { OutboxError } from "../core/errors.ts";
import type { Move } from "../core/lifecycle.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Settled } from "../store/store.ts";

export type Event =
  /** An attempt was settled, or could not be: its token was lost, or the consumer was faster. */
  | { readonly kind: "settled"; readonly dispatch: Dispatch; readonly outcome: Outcome; readonly move: Move; readonly result: Settled }
  /** A due row came to its end without an attempt: expired, or out of attempts. */
  | { readonly kind: "ended"; readonly dispatch: Dispatch }
  /** A route cannot start anything: a person must mend the configuration. `route` null: the default template. */
  | { readonly kind: "fault"; readonly route: string | null; readonly error: string }
  | { readonly kind: "fault over"; readonly route: string | null }
  /** A source does not answer. The others go on. */
  | { readonly kind: "trouble"; readonly source: string; readonly error: OutboxError }
  | { readonly kind: "trouble over"; readonly source: string }
  /** A destination failed so often in a row that nothing is sent to it for a while. */
  | { readonly kind: "circuit"; readonly source: string; readonly deliverTo: string; readonly cooldownMs: number }
  | { readonly kind: "circuit over"; readonly source: string; readonly deliverTo: string }
  /** Dead letters were deleted because their time was over. */
  | { readonly kind: "swept"; readonly source: string; readonly deadLetters: number }
  /** The machine is out of processes, memory or descriptors. */
  | { readonly kind: "exhausted"; readonly error: string }
  | { readonly kind: "exhausted over" }
  /** The database refuses this outcome and takes others. It is kept and tried again. Told when it begins. */
  | { readonly kind: "stuck"; readonly dispatch: Dispatch; readonly outcome: Outcome; readonly error: OutboxError }
  /** An outcome could not be written before the runner had to go; its dispatch will be sent again. */
  | { readonly kind: "unwritten"; readonly dispatch: Dispatch; readonly outcome: Outcome };

export type Tell = (event: Event) => void;

/** Exactly these five, and in this order, as `run --once --json` prints them. */
export interface Counters {
  /** Due rows that this run claimed, expired or found exhausted. */
  attempted: number;
  /** Transport successes whose settle applied or found the row already acked. */
  delivered: number;
  dead_letter: number;
  expired: number;
  retried: number;
}

export function newCounters(): Counters {
  return { attempted: 0, delivered: 0, dead_letter: 0, expired: 0, retried: 0 };
}

/** Counts a row that a claim moved. */
export function countTaken(counters: Counters, row: Dispatch): void {
  counters.attempted += 1;
  if (row.status === "expired") counters.expired += 1;
  if (row.status === "dead_letter") counters.dead_letter += 1;
}

/** Counts a settled attempt. */
export function countSettled(counters: Counters, outcome: Outcome, move: Move, result: Settled): void {
  if (outcome.kind === "ok" && result !== "lost") counters.delivered += 1;
  if (result !== "applied") return;
  if (move.to === "dead_letter") counters.dead_letter += 1;
  if (move.reason === "dispatch.pending.retry_backoff") counters.retried += 1;
}
