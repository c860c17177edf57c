/** From what the file states to what the program uses: paths made absolute, routes filled up, times turned into attempts. */
import { attemptsFor, type Backoff, DEFAULT_MAX_ATTEMPTS } from "../core/backoff.ts";
import { formatDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import { absolute, type Place } from "./place.ts";
import { check, type File, type Problem, type Route } from "./schema.ts";
import type { RoutePolicy, Settings } from "./settings.ts";

export type Interpreted = { readonly settings: Settings } | { readonly problems: readonly Problem[] };

/** Reads what a YAML parser made of the file; undefined stands for no file at all. */
export function interpret(raw: unknown, place: Place): Interpreted {
  const checked = check(raw);
  if ("problems" in checked) return checked;
  const { file } = checked;
  const problems: Problem[] = [];
  const own = policyOf(file, null, [], place, problems);
  // Its backoff is wrong for every route that has none of its own: saying that once is enough.
  const routes = problems.length > 0 ? [] : [...file.dispatch.routes];
  const policies = new Map(routes.map(([kind, route]) => [kind, policyOf(file, route, ["dispatch", "routes", kind], place, problems)]));
  return problems.length > 0 ? { problems } : { settings: settingsOf(file, own, policies, place) };
}

function settingsOf(file: File, own: RoutePolicy, routes: ReadonlyMap<string, RoutePolicy>, place: Place): Settings {
  const database = file.database === undefined ? place.database : absolute(file.database, place);
  const { dispatch, run, retention, limits, log } = file;
  return {
    database,
    databaseIsDefault: database === place.database,
    sources: new Map([["default", database], ...[...file.sources].map(([name, path]) => [name, absolute(path, place)] as const)]),
    dispatch: {
      default: own,
      routes,
      concurrency: dispatch.concurrency,
      perDestination: dispatch.per_destination,
      onConfigError: dispatch.on_config_error,
      circuit: { failures: dispatch.circuit.failures, cooldownMs: dispatch.circuit.cooldown },
    },
    run: { intervalMs: run.interval, shutdownGraceMs: run.shutdown_grace },
    retention: { deliveredMs: retention.delivered, deadLetterMs: retention.dead_letter, inboxMs: retention.inbox },
    limits: { payloadBytes: limits.payload, outputBytes: limits.output },
    log,
  };
}

/** The policy of a route, or with null the one that `dispatch` states. */
function policyOf(file: File, route: Route | null, at: readonly string[], place: Place, problems: Problem[]): RoutePolicy {
  const { dispatch } = file;
  const from = route ?? dispatch;
  const level = route === null ? ["dispatch"] : at;
  const backoff: Backoff = {
    baseMs: from.backoff?.base ?? dispatch.backoff.base,
    maxMs: from.backoff?.max ?? dispatch.backoff.max,
    jitter: from.backoff?.jitter ?? dispatch.backoff.jitter,
  };
  if (backoff.maxMs < backoff.baseMs) {
    const message = `would wait ${formatDuration(backoff.baseMs)} (base) but at most ${formatDuration(backoff.maxMs)} (max); set max to base or more`;
    problems.push({ path: [...level, "backoff"], of: "key", message });
  }
  const template = from.notify_template ?? dispatch.notify_template;
  return {
    notifyTemplate: template === undefined ? null : commandIn(template, place),
    timeoutMs: from.timeout ?? dispatch.timeout,
    maxAttempts: attemptsOf(dispatch, route, level, backoff, problems),
    backoff,
    permanentExitCodes: from.permanent_exit_codes ?? dispatch.permanent_exit_codes,
    // Assigned to an object without a prototype, as the schema makes them.
    env: route?.env === undefined ? dispatch.env : Object.assign(Object.create(null) as Record<string, string>, dispatch.env, route.env),
  };
}

/** A time set for all kinds is counted out with the backoff of the route: it is the time that was asked for. */
function attemptsOf(
  dispatch: File["dispatch"],
  route: Route | null,
  level: readonly string[],
  backoff: Backoff,
  problems: Problem[],
): number {
  for (const [from, path] of [
    [route, level],
    [dispatch, ["dispatch"]],
  ] as const) {
    if (from?.max_attempts !== undefined && from.retry_for !== undefined) {
      problems.push({ path: [...path, "retry_for"], of: "key", message: "cannot stand beside max_attempts; keep one of the two" });
      return from.max_attempts;
    }
    if (from?.max_attempts !== undefined) return from.max_attempts;
    if (from?.retry_for === undefined) continue;
    try {
      return attemptsFor(from.retry_for, backoff);
    } catch (error) {
      if (!(error instanceof OutboxError)) throw error;
      // Counted out with a route's own backoff, that is the line to mend.
      problems.push({
        path: from === route || route === null ? [...level, "retry_for"] : [...level, "backoff"],
        of: "key",
        message: `cannot be met: ${error.message}; ${error.hint}`,
      });
      return DEFAULT_MAX_ATTEMPTS;
    }
  }
  return DEFAULT_MAX_ATTEMPTS;
}

/** Element 0 without a slash is looked up in PATH; with one it is a path like all others. */
function commandIn(template: readonly string[], place: Place): readonly string[] {
  const [command = "", ...rest] = template;
  return [command.includes("/") ? absolute(command, place) : command, ...rest];
}
