/** The words of a story: what can happen in a simulated world, one small thing after another. Plain data, so that it shrinks. */

/** What a message's command does when it is run. `stuck` cannot be ended and takes 40 s, `never` returns only when it is killed. */
export interface Act {
  readonly outcome: "ok" | "fail" | "reject" | "fault" | "exhausted" | "hang" | "stuck" | "never";
  readonly ms: number;
  /** The wait that a failing command asks for. */
  readonly retryAfterMs?: number;
  /** Whether the command acknowledges its own message before it ends. */
  readonly acks?: boolean;
}

export interface Letter {
  readonly kind: "ping" | "strict" | "stray";
  readonly to: "seat" | "desk";
  readonly max: number;
  readonly key?: "k" | "l";
  readonly dedup?: "a" | "b";
  readonly ack?: boolean;
  readonly delayS?: number;
  /** From its due time on; 0 and less: it is late already. */
  readonly expiresS?: number;
  /** What its commands do, one after the other; afterwards they succeed at once. */
  readonly acts?: readonly Act[];
}

/**
 * What becomes of a transaction. `busy`: another process holds the lock. `full`: the disk is, and all is rolled back. `lost`, `kept`:
 * an I/O error before or after it took effect. `slow`: every look at the clock within it takes 400 ms. `late`: its
 * process stands still for 16 s before it learns of it.
 */
export type Mishap = "none" | "busy" | "full" | "lost" | "kept" | "slow" | "late";

export interface Scope {
  readonly to?: "seat" | "desk";
  readonly kind?: "ping" | "strict";
  readonly key?: "k" | "l";
}

/** `who` and `row` count modulo what there is: a story stays a story when something before is left out. */
export type Deed =
  | { readonly do: "enqueue"; readonly letter: Letter; readonly mishap: Mishap }
  /** Starts a runner; at most three live at a time. */
  | { readonly do: "run"; readonly mode: "once" | "forever" }
  /** `enqueue --now`. */
  | { readonly do: "now"; readonly letter: Letter }
  /** A program enters it claimed, with changes of its own that it may roll back, and delivers it with a function of its own. */
  | { readonly do: "deliver"; readonly letter: Letter; readonly leaseS: number; readonly rollback: boolean }
  | { readonly do: "kill"; readonly who: number }
  /** It dies at its n-th await from now on. */
  | { readonly do: "crash"; readonly who: number; readonly crossings: number }
  | { readonly do: "freeze"; readonly who: number; readonly ms: number }
  | { readonly do: "stop"; readonly who: number; readonly twice: boolean }
  /** Its next transactions go wrong. */
  | { readonly do: "trouble"; readonly who: number; readonly mishaps: readonly Mishap[] }
  /** The wall clock is set, or the machine slept. */
  | { readonly do: "clock"; readonly seconds: number }
  | { readonly do: "ack"; readonly row: number; readonly right: boolean }
  | { readonly do: "retry"; readonly row: number; readonly expiresS: number | null }
  | { readonly do: "cancel"; readonly row: number }
  | { readonly do: "purge"; readonly row: number; readonly force: boolean }
  /** By a filter: the destination, or all. */
  | { readonly do: "change many"; readonly verb: "retry" | "cancel" | "purge"; readonly to: "seat" | "desk" | null }
  /** A consumer handles a row's message once: begins in its inbox, works, and completes or abandons it. */
  | { readonly do: "handle"; readonly row: number; readonly ms: number; readonly ends: "complete" | "abandon" }
  | { readonly do: "hold"; readonly scope: Scope; readonly forS: number | null }
  | { readonly do: "resume"; readonly scope: Scope | "all" }
  /** The command of a kind cannot be found for a while. */
  | { readonly do: "break"; readonly kind: "ping" | "strict"; readonly ms: number };

export interface Step {
  readonly afterMs: number;
  readonly deed: Deed;
}

export interface Story {
  /** How many runners there are at its beginning. */
  readonly runners: number;
  readonly steps: readonly Step[];
  /** From the last deed until all faults stop. */
  readonly pauseMs: number;
  /** Who works off what is left in the end. */
  readonly ending: "once" | "forever";
}
