/** The commands that a runner has in hand: started right after their claim, ended together at a shutdown. */
import type { Dispatch } from "../core/dispatch.ts";
import type { Clock } from "../core/seams.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Settlement } from "../store/store.ts";
import type { Transport } from "../transport/transport.ts";
import type { Leases } from "./lease.ts";
import { leaseS, ownTimeMs, type Plan, policyOf, routeOf } from "./plan.ts";

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

export interface CrewSeams {
  readonly clock: Clock;
  readonly transport: Transport;
  /** Path of the database that has the rows: commands find it in their environment. */
  readonly database: string;
  /** Ends the groups of all running commands when it aborts. */
  readonly kill: AbortSignal;
  /** What is being ended waits for nothing once this aborts. */
  readonly now: AbortSignal;
  /** Minds the lease of what runs. */
  readonly leases: Leases;
  /** Called whenever something finished. */
  readonly ring: () => void;
}

export function crew(seams: CrewSeams): Crew {
  const { clock, leases, ring } = seams;
  const running = new Set<number>();
  const finished: Settlement[] = [];
  let lastFinishedMs = 0;
  const finish = (claim: Dispatch, plan: Plan, outcome: Outcome): void => {
    running.delete(claim.seq);
    leases.forget(claim.seq);
    finished.push({ claim, outcome, policy: policyOf(plan, claim.kind) });
    lastFinishedMs = clock.monotonicMs();
    ring();
  };
  return {
    start(dispatch, plan) {
      running.add(dispatch.seq);
      const route = routeOf(plan, dispatch.kind);
      leases.mind(dispatch, leaseS(route), ownTimeMs(route));
      void attempt(seams, dispatch, plan).then((outcome) => finish(dispatch, plan, outcome));
    },
    release(dispatch, plan, why) {
      finish(dispatch, plan, { kind: "released", error: `${why} before the command started`, exhausted: false });
    },
    finished,
    running: () => running.size,
    rows: () => [...running],
    lastFinishedMs: () => lastFinishedMs,
  };
}

export function noRoute(kind: string): string {
  return `no route for kind "${kind}" and no dispatch.notify_template`;
}

/** Never rejects. */
async function attempt({ transport, kill, now, database }: CrewSeams, dispatch: Dispatch, plan: Plan): Promise<Outcome> {
  try {
    const route = routeOf(plan, dispatch.kind);
    if (route === null) return { kind: "unresolvable", error: noRoute(dispatch.kind) };
    const fault = route.fault();
    if (fault !== null) return { kind: "fault", error: fault };
    const { timeoutMs, permanentExitCodes } = route;
    const job = { ...route.message(dispatch, database), cwd: plan.cwd, timeoutMs, outputLimit: plan.outputLimit, permanentExitCodes };
    return await transport.run(job, kill, now);
  } catch (error) {
    // A transport never rejects; what throws is a row of which no message can be made.
    return { kind: "rejected", report: null, error: `no message can be made of it: ${String(error)}` };
  }
}
