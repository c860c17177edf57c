/** How the runners of a story are set: short times, so that a few seconds hold much. */
import type { Policy } from "../../../src/core/lifecycle.ts";
import type { Plan, Route } from "../../../src/dispatcher/plan.ts";

export const TIMEOUT_MS = 2_000;
/** Timeout and margin. */
export const LEASE_S = 7;
/** A kind without a route is claimed for a moment, to say so. */
export const STRAY_LEASE_S = 5;
/** Timeout, SIGTERM, SIGKILL, drain: afterwards no lease is renewed. */
export const OWN_TIME_MS = 5_000;
export const CONCURRENCY = 3;
export const PER_DESTINATION = 2;
export const CIRCUIT = { failures: 3, cooldownS: 5 };
export const BACKOFF = { baseMs: 1_000, maxMs: 8_000, jitter: 0 };
export const RETENTION = { deliveredS: 60, deadLetterS: 120, inboxS: 60 };

const NOTHING = new Uint8Array();
const POLICY: Policy = { backoff: BACKOFF, onConfigError: "wait" };

/** @param broken why nothing of a kind can start at the moment */
export function plan(broken: (kind: string) => string | null): Plan {
  const route = (kind: string, policy: Policy): Route => ({
    fault: () => broken(kind),
    // What the simulated transport must know of a claim.
    message: ({ seq, lock_token, payload }) => ({ argv: ["command", String(seq), lock_token ?? "", payload], env: {}, stdin: NOTHING }),
    timeoutMs: TIMEOUT_MS,
    policy,
    permanentExitCodes: [],
  });
  return {
    routes: new Map([
      ["ping", route("ping", POLICY)],
      ["strict", route("strict", { ...POLICY, onConfigError: "fail" })],
    ]),
    fallback: null,
    policy: POLICY,
    concurrency: CONCURRENCY,
    perDestination: PER_DESTINATION,
    circuit: CIRCUIT,
    retention: RETENTION,
    cwd: "/",
    outputLimit: 100,
    intervalMs: 5_000,
    shutdownGraceMs: 3_000,
  };
}
