/** What keeps a runner from starting commands although rows are due: routes at fault, and a machine out of resources. */
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Settlement } from "../store/store.ts";
import { type Plan, type Route, routeName } from "./plan.ts";
import type { Told } from "./told.ts";

export interface Faults {
  /** Looks every route up. What can be known before a claim is known before it. */
  look(plan: Plan): void;
  /** Learns from what an attempt came to, before the next claim is made. */
  learn(plan: Plan, settlement: Settlement): void;
  /** The runner ends: what another one told of the machine is over if this one met nothing of it. */
  conclude(): void;
  /** Whether nothing of this route is claimed at the moment. */
  stops(route: string | null): boolean;
  /** How long nothing at all is claimed. */
  pausedForMs(): number;
  /**
   * Milliseconds until something that was stopped or paused may be tried again; Infinity when nothing is so for a time.
   * @param sinceMs when the last pass began: what has ended after it is tried at once
   */
  againInMs(sinceMs: number): number;
  /** The first thing that a person must see to; null when there was none. */
  readonly first: OutboxError | null;
}

/** A backoff of 0 must not make a broken route spin. */
const SHORTEST_STOP_MS = 1_000;

interface State {
  /** Why nothing of the route can start, as looked up before a claim. */
  readonly known: string | null;
  /** Until when it is stopped because a command did not start, on the monotonic clock. */
  readonly untilMs: number;
  /** Whether the last command of it that was to start did; null: none was. */
  readonly starts: boolean | null;
}

const UNKNOWN: State = { known: null, untilMs: 0, starts: null };

/**
 * What stands in the memory. The two are apart because only the first can be known to be over by looking: a fault that shows at
 * the start is over when a command starts.
 */
const LOOKED_UP = "route ";
const AT_START = "start ";
const MACHINE = "machine";

/** @param pauseMs how long a machine out of resources is left alone */
export function faults(clock: Clock, told: Told, pauseMs: () => number): Faults {
  const states = new Map<string | null, State>();
  let pausedUntilMs = 0;
  /** When the machine was last out of resources, epoch seconds. */
  let exhaustedAt: number | null = null;
  let first: OutboxError | null = null;

  const stateOf = (route: string | null): State => states.get(route) ?? UNKNOWN;
  const isStopped = (state: State): boolean => state.untilMs > clock.monotonicMs();
  const begin = (topic: string, route: string | null, error: string): void => {
    const name = route === null ? "" : `route "${route}": `;
    first ??= new OutboxError("settings", `${name}${error}`, "nothing of it is sent, and no attempt is spent, until this is mended");
    told.begin(`${topic}${route ?? ""}`, { kind: "fault", route, error }, error);
  };
  const end = (topic: string, route: string | null): void => told.end(`${topic}${route ?? ""}`, { kind: "fault over", route });
  const lookAt = (name: string | null, route: Route | null): void => {
    const state = stateOf(name);
    const known = route === null || route.policy.onConfigError === "fail" ? null : route.fault();
    states.set(name, { ...state, known });
    if (known !== null) begin(LOOKED_UP, name, known);
    else if (state.known !== null) end(LOOKED_UP, name);
  };
  const machineIsSound = (): void => {
    exhaustedAt = null;
    told.end(MACHINE, { kind: "exhausted over" });
  };
  const exhausted = (error: string): void => {
    pausedUntilMs = clock.monotonicMs() + pauseMs();
    exhaustedAt = clock.now();
    first ??= new OutboxError(
      "busy",
      `the machine is out of resources: ${error}`,
      "try again; lower dispatch.concurrency or raise the limits",
    );
    told.begin(MACHINE, { kind: "exhausted", error }, error);
  };

  // What another runner told of a route is over when this one finds the route sound, or not there.
  told.settle(LOOKED_UP, (topic) => ({ kind: "fault over", route: topic.slice(LOOKED_UP.length) || null }));

  return {
    look(plan) {
      const routes: readonly (readonly [string | null, Route | null])[] = [[null, plan.fallback], ...plan.routes];
      const names = new Set(routes.map(([name]) => name));
      for (const [name, { known, starts }] of states) {
        if (names.has(name)) continue;
        states.delete(name);
        if (known !== null) end(LOOKED_UP, name);
        if (starts === false) end(AT_START, name);
      }
      for (const [name, route] of routes) lookAt(name, route);
    },
    learn(plan, { claim, outcome, policy }) {
      const name = routeName(plan, claim.kind);
      const state = stateOf(name);
      if (outcome.kind === "fault" && policy.onConfigError === "wait") {
        const untilMs = clock.monotonicMs() + Math.max(policy.backoff.baseMs, SHORTEST_STOP_MS);
        states.set(name, { ...state, untilMs, starts: false });
        begin(AT_START, name, outcome.error);
      }
      if (outcome.kind === "released" && outcome.exhausted) exhausted(outcome.error);
      if (!("report" in outcome) || outcome.report === null) return;
      // Also the first time, because another runner may have told.
      if (state.starts !== true) end(AT_START, name);
      states.set(name, { ...state, untilMs: 0, starts: true });
      // What started before shows nothing.
      if (exhaustedAt !== null && claim.updated_at > exhaustedAt) machineIsSound();
    },
    conclude() {
      const started = [...states.values()].some(({ starts }) => starts === true);
      if (started && exhaustedAt === null) machineIsSound();
    },
    stops: (route) => stateOf(route).known !== null || isStopped(stateOf(route)),
    pausedForMs: () => Math.max(0, pausedUntilMs - clock.monotonicMs()),
    againInMs(sinceMs) {
      const ends = [pausedUntilMs, ...[...states.values()].map(({ untilMs }) => untilMs)].filter((untilMs) => untilMs > sinceMs);
      return Math.min(...ends.map((untilMs) => Math.max(0, untilMs - clock.monotonicMs())), Number.POSITIVE_INFINITY);
    },
    get first() {
      return first;
    },
  };
}
