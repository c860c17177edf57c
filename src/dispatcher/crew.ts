/** The commands that a runner has in hand: started right after their claim, ended together at a shutdown. */
import type { Dispatch } from "../core/dispatch.ts";
import type { Clock } from "../core/seams.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Settlement } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import { type Plan, policyOf, routeOf } from "./plan.ts";

export interface Crew {
  /** Starts the command of a fresh claim; what it comes to appears in `finished`. */
  start(dispatch: Dispatch, plan: Plan): void;
  /** Gives a fresh claim back, because its command must not start any more. */
  release(dispatch: Dispatch, plan: Plan, why: string): void;
  /** Settlements that are not written yet, oldest first. Whoever writes them takes them out. */
  readonly finished: Settlement[];
  running(): number;
  /** `seq` of every row whose command runs. */
  rows(): number[];
  /** When something last finished, on the monotonic clock. */
  lastFinishedMs(): number;
}

/**
 * @param kill ends the groups of all running commands when it aborts (reason `"now"`: without SIGTERM first)
 * @param rings called whenever something finished
 */
export function crew(clock: Clock, transport: Transport, kill: AbortSignal, rings: () => void): Crew {
  const running = new Set<number>();
  const finished: Settlement[] = [];
  let lastFinishedMs = 0;
  const finish = (claim: Dispatch, plan: Plan, outcome: Outcome): void => {
    running.delete(claim.seq);
    finished.push({ claim, outcome, policy: policyOf(plan, claim.kind) });
    lastFinishedMs = clock.monotonicMs();
    rings();
  };
  return {
    start(dispatch, plan) {
      running.add(dispatch.seq);
      void attempt(transport, kill, dispatch, plan).then((outcome) => finish(dispatch, plan, outcome));
    },
    release(dispatch, plan, why) {
      finish(dispatch, plan, { kind: "released", error: why, exhausted: false });
    },
    finished,
    running: () => running.size,
    rows: () => [...running],
    lastFinishedMs: () => lastFinishedMs,
  };
}

/** Never rejects. */
async function attempt(transport: Transport, kill: AbortSignal, dispatch: Dispatch, plan: Plan): Promise<Outcome> {
  try {
    const route = routeOf(plan, dispatch.kind);
    if (route === null) return { kind: "unresolvable", error: `no route for kind "${dispatch.kind}" and no dispatch.notify_template` };
    const fault = route.fault();
    if (fault !== null) return { kind: "fault", error: fault };
    const { timeoutMs, permanentExitCodes } = route;
    const job = { ...route.message(dispatch), cwd: plan.cwd, timeoutMs, outputLimit: plan.outputLimit, permanentExitCodes };
    return await transport.run(job, kill);
  } catch (error) {
    // A transport never rejects; what throws is a row of which no message can be made.
    return { kind: "rejected", report: null, error: `no message can be made of it: ${String(error)}` };
  }
}
