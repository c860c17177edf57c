/** What holds, setting by setting, and where each value comes from: for `config show`. Pure. */
import { formatDuration } from "../core/duration.ts";
import type { Explained } from "./complain.ts";
import type { Key } from "./kinds.ts";
import { nameOf } from "./problem.ts";
import type { RoutePolicy } from "./settings.ts";
import { formatSize } from "./size.ts";

export interface Holding {
  /** The name of the setting: `dispatch.routes.revival_ping.timeout`. */
  readonly name: string;
  /** As it would stand in the file: durations and sizes as text. Null: nothing. */
  readonly value: string | number | readonly string[] | readonly number[] | Readonly<Record<string, string>> | null;
  /** `default`, `FILE:LINE`, or what took the file's place: `--db`, `OUTBOX_DB`. */
  readonly from: string;
}

/** What a flag or a variable said instead of the file. */
export interface Instead {
  readonly database: string;
  readonly from: string;
}

/** Every setting, in the order of the reference. */
export function describe(explained: Explained, instead: Instead | null): Holding[] {
  const { settings } = explained;
  const { dispatch, run, retention, limits, log } = settings;
  const at = (...path: Key[]) => placeOf(explained, [path]);
  const one = (value: Holding["value"], ...path: Key[]): Holding => ({ name: nameOf(path), value, from: at(...path) });
  return [
    instead === null ? one(settings.database, "database") : { name: "database", value: instead.database, from: instead.from },
    ...[...settings.sources].filter(([name]) => name !== "default").map(([name, path]) => one(path, "sources", name)),
    ...policy(explained, dispatch.default, [["dispatch"]]),
    one(dispatch.concurrency, "dispatch", "concurrency"),
    one(dispatch.perDestination, "dispatch", "per_destination"),
    one(dispatch.onConfigError, "dispatch", "on_config_error"),
    one(dispatch.circuit.failures, "dispatch", "circuit", "failures"),
    one(formatDuration(dispatch.circuit.cooldownMs), "dispatch", "circuit", "cooldown"),
    ...[...dispatch.routes].flatMap(([kind, route]) => policy(explained, route, [["dispatch", "routes", kind], ["dispatch"]])),
    one(formatDuration(run.intervalMs), "run", "interval"),
    one(formatDuration(run.shutdownGraceMs), "run", "shutdown_grace"),
    one(formatDuration(retention.deliveredMs), "retention", "delivered"),
    one(formatDuration(retention.deadLetterMs), "retention", "dead_letter"),
    one(formatDuration(retention.inboxMs), "retention", "inbox"),
    one(formatSize(limits.payloadBytes), "limits", "payload"),
    one(formatSize(limits.outputBytes), "limits", "output"),
    one(log.level, "log", "level"),
    one(log.format, "log", "format"),
  ];
}

/** @param levels where it may be set, the nearest first */
function policy(explained: Explained, route: RoutePolicy, levels: readonly (readonly Key[])[]): Holding[] {
  const [own = []] = levels;
  const one = (value: Holding["value"], ...path: Key[]): Holding => {
    // `retry_for` is shown as the number of attempts that it came to.
    const names: readonly (readonly Key[])[] = path[0] === "max_attempts" ? [path, ["retry_for"]] : [path];
    const places = levels.flatMap((level) => names.map((name) => level.concat(name)));
    return { name: nameOf(own.concat(path)), value, from: placeOf(explained, places) };
  };
  return [
    one(route.notifyTemplate, "notify_template"),
    one(formatDuration(route.timeoutMs), "timeout"),
    one(route.maxAttempts, "max_attempts"),
    one(formatDuration(route.backoff.baseMs), "backoff", "base"),
    one(formatDuration(route.backoff.maxMs), "backoff", "max"),
    one(route.backoff.jitter, "backoff", "jitter"),
    one(route.permanentExitCodes, "permanent_exit_codes"),
    one(route.env, "env"),
  ];
}

/** Of several places the first that the file sets. */
function placeOf(explained: Explained, paths: readonly (readonly Key[])[]): string {
  for (const path of paths) {
    const line = explained.lineOf(path);
    if (line !== null) return `${explained.file ?? ""}:${line}`;
  }
  return "default";
}
