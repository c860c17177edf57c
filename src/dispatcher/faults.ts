/** What keeps a runner from starting commands although rows are due: routes at fault, and a machine out of resources. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Plan, Route } from "./plan.ts";
import type { Tell } from "./report.ts";

export interface Faults {
  /** Looks every route up. What can be known before a claim is known before it. */
  look(plan: Plan): void;
  /** Whether nothing of this route is claimed at the moment. */
  stops(route: string | null): boolean;
  /** A fault that showed only at the start: the route stops for the wait that its row got. */
  started(route: string | null, error: string, waitMs: number): void;
  exhausted(error: string): void;
  /** Nothing at all is claimed at the moment. */
  pausedForMs(): number;
  /** The first thing that a person must see to; null when there was none. */
  readonly first: OutboxError | null;
  /** Milliseconds until the first stopped route may be tried again; Infinity when none is stopped for a time. */
  againInMs(): number;
}

/** A backoff of 0 must not make a broken route spin. */
const SHORTEST_STOP_MS = 1_000;

export function faults(clock: Clock, tell: Tell, pauseMs: () => number): Faults {
  /** By route: what is wrong as long as it is wrong. */
  const standing = new Map<string | null, string>();
  /** By route: until when it is stopped, on the monotonic clock. */
  const stopped = new Map<string | null, number>();
  let pausedUntil = 0;
  let first: OutboxError | null = null;

  const note = (route: string | null, error: string): void => {
    const name = route === null ? "" : `route "${route}": `;
    first ??= new OutboxError("settings", `${name}${error}`, "nothing of it is sent, and no attempt is spent, until this is mended");
    if (standing.get(route) === error) return;
    standing.set(route, error);
    tell({ kind: "fault", route, error });
  };
  const isStopped = (route: string | null): boolean => (stopped.get(route) ?? 0) > clock.monotonicMs();

  return {
    look(plan) {
      const routes: readonly (readonly [string | null, Route | null])[] = [[null, plan.fallback], ...plan.routes];
      const known = new Set(routes.map(([name]) => name));
      for (const name of standing.keys()) if (!known.has(name)) standing.delete(name);
      for (const [name, route] of routes) {
        const fault = route === null || route.policy.onConfigError === "fail" ? null : route.fault();
        if (fault !== null) note(name, fault);
        else if (!isStopped(name) && standing.delete(name)) tell({ kind: "fault over", route: name });
      }
    },
    stops: (route) => isStopped(route) || standing.has(route),
    started(route, error, waitMs) {
      stopped.set(route, clock.monotonicMs() + Math.max(waitMs, SHORTEST_STOP_MS));
      note(route, error);
    },
    exhausted(error) {
      const begins = pausedUntil <= clock.monotonicMs();
      pausedUntil = clock.monotonicMs() + pauseMs();
      first ??= new OutboxError(
        "busy",
        `the machine is out of resources: ${error}`,
        "try again; lower dispatch.concurrency or raise the limits",
      );
      if (begins) tell({ kind: "exhausted", error });
    },
    pausedForMs: () => Math.max(0, pausedUntil - clock.monotonicMs()),
    get first() {
      return first;
    },
    againInMs: () =>
      Math.min(...[...stopped.values()].map((until) => until - clock.monotonicMs()).filter((ms) => ms > 0), Number.POSITIVE_INFINITY),
  };
}
