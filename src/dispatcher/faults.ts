/** What keeps a runner from starting commands although rows are due: routes at fault, and a machine out of resources. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Settlement } from "../store/store.ts";
import { type Plan, type Route, routeName } from "./plan.ts";
import type { Tell } from "./report.ts";
import type { Told } from "./told.ts";

export interface Faults {
  /** Looks every route up. What can be known before a claim is known before it. */
  look(plan: Plan): void;
  /** Learns from what an attempt came to, before the next claim is made. */
  learn(plan: Plan, settlement: Settlement): void;
  /** Whether nothing of this route is claimed at the moment. */
  stops(route: string | null): boolean;
  /** How long nothing at all is claimed. */
  pausedForMs(): number;
  /** Milliseconds until the first stopped route may be tried again; Infinity when none is stopped for a time. */
  againInMs(): number;
  /** The first thing that a person must see to; null when there was none. */
  readonly first: OutboxError | null;
}

/** A backoff of 0 must not make a broken route spin. */
const SHORTEST_STOP_MS = 1_000;

interface State {
  /** Why nothing of the route can start, as looked up before a claim. */
  readonly known: string | null;
  /** Why its last command did not start; it is over when one starts. */
  readonly shown: string | null;
  /** Until when it is stopped because of that, on the monotonic clock. */
  readonly untilMs: number;
  /** What was told and is not over. */
  readonly told: string | null;
}

const SOUND: State = { known: null, shown: null, untilMs: 0, told: null };

const TOPIC = "route ";
function topicOf(route: string | null): string {
  return `${TOPIC}${route ?? ""}`;
}

/** @param pauseMs how long a machine out of resources is left alone */
export function faults(clock: Clock, told: Told, tell: Tell, pauseMs: () => number): Faults {
  const states = new Map<string | null, State>();
  let pausedUntilMs = 0;
  let exhaustionTold = false;
  let first: OutboxError | null = null;

  const stateOf = (route: string | null): State => states.get(route) ?? SOUND;
  const isStopped = (state: State): boolean => state.untilMs > clock.monotonicMs();
  /** Told when it begins and when it is over, once each, however often it shows in between. */
  const set = (route: string | null, change: Partial<State>): void => {
    const state = { ...stateOf(route), ...change };
    const error = state.known ?? state.shown;
    states.set(route, { ...state, told: error });
    if (error === state.told) return;
    if (error === null) return told.end(topicOf(route), { kind: "fault over", route });
    const name = route === null ? "" : `route "${route}": `;
    first ??= new OutboxError("settings", `${name}${error}`, "nothing of it is sent, and no attempt is spent, until this is mended");
    told.begin(topicOf(route), { kind: "fault", route, error }, error);
  };
  const exhausted = (error: string): void => {
    pausedUntilMs = clock.monotonicMs() + pauseMs();
    first ??= new OutboxError(
      "busy",
      `the machine is out of resources: ${error}`,
      "try again; lower dispatch.concurrency or raise the limits",
    );
    if (!exhaustionTold) tell({ kind: "exhausted", error });
    exhaustionTold = true;
  };

  // What another runner told of a route is over when this one finds the route sound.
  told.settle(TOPIC, (topic) => {
    const name = topic.slice(TOPIC.length);
    return { kind: "fault over", route: name === "" ? null : name };
  });

  return {
    look(plan) {
      const routes: readonly (readonly [string | null, Route | null])[] = [[null, plan.fallback], ...plan.routes];
      const names = new Set(routes.map(([name]) => name));
      for (const name of states.keys()) if (!names.has(name)) states.delete(name);
      for (const [name, route] of routes)
        set(name, { known: route === null || route.policy.onConfigError === "fail" ? null : route.fault() });
    },
    learn(plan, { claim, outcome, policy }) {
      const route = routeName(plan, claim.kind);
      if (outcome.kind === "fault" && policy.onConfigError === "wait")
        set(route, { shown: outcome.error, untilMs: clock.monotonicMs() + Math.max(policy.backoff.baseMs, SHORTEST_STOP_MS) });
      if (outcome.kind === "released" && outcome.exhausted) exhausted(outcome.error);
      if (!("report" in outcome) || outcome.report === null) return;
      exhaustionTold = false;
      set(route, { shown: null, untilMs: 0 });
    },
    stops: (route) => stateOf(route).known !== null || isStopped(stateOf(route)),
    pausedForMs: () => Math.max(0, pausedUntilMs - clock.monotonicMs()),
    againInMs: () =>
      Math.min(...[...states.values()].filter(isStopped).map(({ untilMs }) => untilMs - clock.monotonicMs()), Number.POSITIVE_INFINITY),
    get first() {
      return first;
    },
  };
}
