/** What a run that drains would come to now: the store says which rows, the plan what would become of each. Nothing is written. */
import { shortReason } from "../core/lifecycle.ts";
import type { ForecastWish, Foreseen } from "../store/store.ts";
import { noRoute } from "./crew.ts";
import { type Plan, type Route, routeName, routeOf } from "./plan.ts";
import { leaseTerms } from "./tick.ts";

export interface Outlook {
  /** What the stores are asked. */
  readonly wish: ForecastWish;
  /** Routes that nothing of can start: their rows are left alone, and a person must see to them. */
  readonly faults: readonly RouteFault[];
  /** What would become of a row. */
  readonly fateOf: (row: Foreseen) => Fate;
}

export interface RouteFault {
  /** Null: the default template. */
  readonly route: string | null;
  readonly error: string;
}

export interface Fate {
  /** `fail`: the attempt is known to come to nothing; it is spent. */
  readonly action: "send" | "fail" | "expire" | "die";
  /** The last word of the reason of the move: `attempt`, `deadline`, `max_attempts`. */
  readonly reason: string;
  /** Why it would fail. */
  readonly error: string | null;
}

export function outlook(plan: Plan, isAlive: (holder: string) => boolean): Outlook {
  const routes: readonly (readonly [string | null, Route | null])[] = [[null, plan.fallback], ...plan.routes];
  /** Where a fault stops the route, and where it only fails its attempts. */
  const stopped = new Map<string | null, string>();
  const failing = new Map<string | null, string>();
  for (const [name, route] of routes) {
    const fault = route?.fault() ?? null;
    if (fault !== null) (route?.policy.onConfigError === "fail" ? failing : stopped).set(name, fault);
  }
  const kinds = [...failing.keys()].filter((name) => name !== null);
  return {
    wish: {
      ...leaseTerms(plan, { stops: (route) => stopped.has(route) }),
      circuits: plan.circuit.failures > 0,
      failing: new Set(kinds),
      othersFail: plan.fallback === null || failing.has(null),
      othersUnresolvable: plan.fallback === null,
      isAlive,
    },
    faults: [...stopped].map(([route, error]) => ({ route, error })),
    fateOf(row) {
      if (row.would !== "send") return { action: row.would, reason: shortReason(row.reason_code), error: null };
      const isLast = row.attempt + 1 >= row.max_attempts;
      if (routeOf(plan, row.kind) === null) {
        const dies = isLast || row.unresolved >= 1;
        return { action: dies ? "die" : "fail", reason: dies ? "unresolvable" : "attempt", error: noRoute(row.kind) };
      }
      const error = failing.get(routeName(plan, row.kind)) ?? null;
      if (error === null) return { action: "send", reason: "attempt", error };
      return isLast ? { action: "die", reason: "max_attempts", error } : { action: "fail", reason: "attempt", error };
    },
  };
}
