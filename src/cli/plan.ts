/** From settings to what a runner is told. The one place where both are known. */
import { messageOf } from "../core/message.ts";
import type { Policy } from "../core/lifecycle.ts";
import type { Clock } from "../core/seams.ts";
import type { Plan, Route } from "../dispatcher/plan.ts";
import { type Loaded, policyFor, type RoutePolicy, type Settings } from "../settings/settings.ts";
import type { Transport } from "../transport/transport.ts";
import type { Io } from "./io.ts";

/** The fault of a route without a command, in the words of ADR-0059 D3. */
export const NO_TEMPLATE = "no dispatch.notify_template configured";

export interface PlanSeams {
  readonly io: Pick<Io, "env" | "clock">;
  readonly transport: Transport;
  /** Where commands run: the user's home, else `/`. */
  readonly cwd: string;
}

export function planOf({ settings, file }: Loaded, seams: PlanSeams): Plan {
  const { dispatch, run, limits } = settings;
  const route = (policy: RoutePolicy): Route => routeOf(policy, settings, file, seams);
  // policyFor decides what an unknown kind gets; no kind is named by the empty string.
  const fallback = policyFor(settings, "");
  return {
    routes: new Map([...dispatch.routes].map(([kind, policy]) => [kind, route(policy)])),
    fallback: fallback === null ? null : route(fallback),
    policy: policyOf(dispatch.default, settings),
    concurrency: dispatch.concurrency,
    perDestination: dispatch.perDestination,
    circuit: { failures: dispatch.circuit.failures, cooldownS: dispatch.circuit.cooldownMs / 1_000 },
    retention: {
      deliveredS: settings.retention.deliveredMs / 1_000,
      deadLetterS: settings.retention.deadLetterMs / 1_000,
      inboxS: settings.retention.inboxMs / 1_000,
    },
    cwd: seams.cwd,
    outputLimit: limits.outputBytes,
    intervalMs: run.intervalMs,
    shutdownGraceMs: run.shutdownGraceMs,
  };
}

function policyOf(policy: RoutePolicy, settings: Settings): Policy {
  return { backoff: policy.backoff, onConfigError: settings.dispatch.onConfigError };
}

function routeOf(policy: RoutePolicy, settings: Settings, file: string | null, seams: PlanSeams): Route {
  const template = policy.notifyTemplate;
  const [program] = template ?? [];
  const shared = { runnerEnv: seams.io.env, settingsEnv: policy.env, config: file };
  return {
    fault:
      template === null || program === undefined
        ? () => NO_TEMPLATE
        : forAWhile(seams.io.clock, () => seams.transport.fault(program, environment({ ...seams.io.env, ...policy.env }))),
    message: (dispatch, database) => messageOf(dispatch, { ...shared, database, template: template ?? [] }),
    timeoutMs: policy.timeoutMs,
    policy: policyOf(policy, settings),
    permanentExitCodes: policy.permanentExitCodes,
  };
}

/** How long a look into PATH holds, so that a busy runner does not look for every command anew. */
const LOOK_HOLDS_MS = 1_000;

function forAWhile<T>(clock: Clock, look: () => T): () => T {
  let seen: { readonly at: number; readonly value: T } | null = null;
  return () => {
    if (seen === null || clock.monotonicMs() - seen.at >= LOOK_HOLDS_MS) seen = { at: clock.monotonicMs(), value: look() };
    return seen.value;
  };
}

function environment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
