/** What a runner is told: plain values, made from the settings by whoever wires it. A new plan may come at any tick. */
import type { Policy } from "../core/lifecycle.ts";
import type { Message } from "../core/message.ts";
import type { Dispatch } from "../core/dispatch.ts";
import type { CircuitTerms, RetentionTerms } from "../store/store.ts";

/** How dispatches of one kind are sent. */
export interface Route {
  /** Why nothing of this route can start, as known before any claim: no template, no such command. Null: it can. */
  fault(): string | null;
  /** What its command gets of a row of this database. */
  message(dispatch: Dispatch, database: string): Message;
  readonly timeoutMs: number;
  readonly policy: Policy;
  readonly permanentExitCodes: readonly number[];
}

export interface Plan {
  /** Routes of their own, by kind. */
  readonly routes: ReadonlyMap<string, Route>;
  /** For every other kind; null: a kind without a route is unresolvable. */
  readonly fallback: Route | null;
  /** For the retry that an unresolvable kind gets. */
  readonly policy: Policy;
  /** Commands at once, over all sources. */
  readonly concurrency: number;
  /** Live claims for one destination of one source, over all runners. */
  readonly perDestination: number;
  readonly circuit: CircuitTerms;
  /** How long finished dispatches and a consumer's record of handled ones are kept. */
  readonly retention: RetentionTerms;
  readonly cwd: string;
  readonly outputLimit: number;
  /** Longest sleep of an idle runner. */
  readonly intervalMs: number;
  /** How long running commands may go on after a signal. */
  readonly shutdownGraceMs: number;
}

/** Room for SIGTERM, SIGKILL, drain and one busy wait: a lease outlives its command (DESIGN section 8). */
const LEASE_MARGIN_MS = 5_000;

/** Lease in seconds. A kind that is unresolvable is claimed for a moment, to say so. */
export function leaseS(route: Route | null): number {
  return ((route?.timeoutMs ?? 0) + LEASE_MARGIN_MS) / 1_000;
}

/** How long a command can last at most: its timeout, SIGTERM, SIGKILL and drain. Afterwards no lease is renewed. */
export function ownTimeMs(route: Route | null): number {
  return (route?.timeoutMs ?? 0) + KILL_MS;
}

/** From SIGTERM until nothing of the group is left and its output is drained. */
const KILL_MS = 3_000;

/** The name of the route that a kind takes; null is the fallback. */
export function routeName(plan: Plan, kind: string): string | null {
  return plan.routes.has(kind) ? kind : null;
}

export function routeOf(plan: Plan, kind: string): Route | null {
  return plan.routes.get(kind) ?? plan.fallback;
}

export function policyOf(plan: Plan, kind: string): Policy {
  return routeOf(plan, kind)?.policy ?? plan.policy;
}
