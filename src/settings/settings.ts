/** The settings as the rest of the program sees them: plain values, durations in milliseconds, paths absolute. */
import type { Backoff } from "../core/backoff.ts";

/** How dispatches of one kind are sent. */
export interface RoutePolicy {
  /** The argv, placeholders and all; element 0 is a name without a slash or an absolute path. Null: none is configured. */
  readonly notifyTemplate: readonly string[] | null;
  readonly timeoutMs: number;
  /** How many sends a dispatch gets that asks for nothing else. `retry_for` is already turned into a number. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly permanentExitCodes: readonly number[];
  /** Added to the command's environment. Has no prototype, so look-ups by any name are safe. */
  readonly env: Readonly<Record<string, string>>;
}

export type LogLevel = "error" | "warn" | "info" | "debug";
export type LogFormat = "text" | "json";

export interface Settings {
  /** Absolute path. */
  readonly database: string;
  /** Whether `database` is the place that it has without settings. Only there a missing directory is made. */
  readonly databaseIsDefault: boolean;
  /** Name to absolute path, in the order of the file; the first, `default`, is `database`. */
  readonly sources: ReadonlyMap<string, string>;
  readonly dispatch: {
    readonly default: RoutePolicy;
    readonly routes: ReadonlyMap<string, RoutePolicy>;
    /** Commands at once, per runner, over all sources. */
    readonly concurrency: number;
    /** Live claims for one destination of one source, over all runners. */
    readonly perDestination: number;
    readonly onConfigError: "wait" | "fail";
    /** `failures` 0 turns circuits off. */
    readonly circuit: { readonly failures: number; readonly cooldownMs: number };
  };
  readonly run: { readonly intervalMs: number; readonly shutdownGraceMs: number };
  /** 0 keeps for ever. */
  readonly retention: { readonly deliveredMs: number; readonly deadLetterMs: number; readonly inboxMs: number };
  readonly limits: { readonly payloadBytes: number; readonly outputBytes: number };
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
}

/** Which rule named the settings file: a flag, a variable, the user's place, the machine's place, or none exists. */
export type Origin = "--config" | "OUTBOX_CONFIG" | "user" | "system" | "built-in";

export interface Loaded {
  readonly settings: Settings;
  /** Absolute real name of the file; null with built-in settings. */
  readonly file: string | null;
  readonly origin: Origin;
}

/** What the settings file is looked for with. */
export interface Choice {
  /** Value of `--config`. */
  readonly config?: string | undefined;
  /** Where a relative `--config` or `OUTBOX_CONFIG` starts; the current directory unless given. Absolute. */
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** User id of the caller: besides root the only one who may own the file. */
  readonly uid: number;
}

/**
 * How a kind is sent: by its route, else by the default. Null: no route for it while there are routes and there is no
 * default template, so nothing says what to run (DESIGN section 7).
 */
export function policyFor(settings: Settings, kind: string): RoutePolicy | null {
  const { default: fallback, routes } = settings.dispatch;
  const route = routes.get(kind);
  if (route !== undefined) return route;
  return routes.size > 0 && fallback.notifyTemplate === null ? null : fallback;
}
