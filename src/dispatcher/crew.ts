/** The commands that a runner has in hand: started right after their claim, ended together at a shutdown. */
import type { Dispatch } from "../core/dispatch.ts";
import type { Policy } from "../core/lifecycle.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Settlement } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import { type Plan, routeOf } from "./plan.ts";

export interface Crew {
  /** Starts the command of a fresh claim; what it comes to appears in `finished`. */
  start(dispatch: Dispatch, plan: Plan): void;
  /** Settlements that are not written yet, oldest first. Whoever writes them takes them out. */
  readonly finished: Settlement[];
  /** `seq` of every row whose command runs or whose outcome is not written. */
  inHand(): number[];
  running(): number;
}

/**
 * @param kill ends the groups of all running commands when it aborts (reason `"now"`: without SIGTERM first)
 * @param rings called whenever something finished
 */
export function crew(transport: Transport, kill: AbortSignal, rings: () => void): Crew {
  const running = new Map<number, Dispatch>();
  const finished: Settlement[] = [];
  const attempt = async (dispatch: Dispatch, plan: Plan): Promise<Outcome> => {
    const route = routeOf(plan, dispatch.kind);
    if (route === null) return { kind: "unresolvable", error: `no route for kind "${dispatch.kind}" and no dispatch.notify_template` };
    const fault = route.fault();
    if (fault !== null) return { kind: "fault", error: fault };
    const { timeoutMs, permanentExitCodes } = route;
    return transport.run({ ...route.message(dispatch), cwd: plan.cwd, timeoutMs, outputLimit: plan.outputLimit, permanentExitCodes }, kill);
  };
  const finish = async (dispatch: Dispatch, plan: Plan, policy: Policy): Promise<void> => {
    let outcome: Outcome;
    try {
      outcome = await attempt(dispatch, plan);
    } catch (error) {
      // A transport never rejects; what throws is a row of which no message can be made.
      outcome = { kind: "rejected", report: null, error: `no message can be made of it: ${String(error)}` };
    }
    running.delete(dispatch.seq);
    finished.push({ claim: dispatch, outcome, policy });
    rings();
  };
  return {
    start(dispatch, plan) {
      running.set(dispatch.seq, dispatch);
      const policy = routeOf(plan, dispatch.kind)?.policy ?? plan.policy;
      void finish(dispatch, plan, policy);
    },
    finished,
    inHand: () => [...running.keys(), ...finished.map(({ claim }) => claim.seq)],
    running: () => running.size,
  };
}
