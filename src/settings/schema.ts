/**
 * Every setting: its kind, its default as a person would write it, and the sentence that explains it. The reference in the
 * README, the file that `init` writes and the JSON Schema are printed from here.
 */
import * as v from "valibot";
import { DEFAULT_BACKOFF, DEFAULT_MAX_ATTEMPTS, MAX_ATTEMPTS_LIMIT } from "../core/backoff.ts";
import { formatDuration, MAX_DURATION_MS } from "../core/duration.ts";
import { environment } from "./environment.ts";
import { duration, exitCodes, fraction, type Key, named, oneOf, originOf, path, pathOf, section, size, whole } from "./kinds.ts";
import { found } from "./shown.ts";
import { template } from "./template.ts";

const DAY_MS = 86_400_000;
const MIB = 1_048_576;

// What a timer waits for stays below 2^31 ms, beyond which timers fire at once.
const timer = (minMs: number) => duration({ minMs, maxMs: DAY_MS });
const wait = () => duration({ minMs: 0, maxMs: 365 * DAY_MS });
const age = () => duration({ minMs: 0, maxMs: MAX_DURATION_MS });

interface Notes {
  /** A value to show where there is no default to show. */
  readonly example?: string;
  /** The default in words, where it is not the schema's own to fill in. */
  readonly unset?: string;
}

/**
 * Gives a kind its sentence. Metadata is never run, so it is put into the pipe that is there: a pipe around each pipe costs
 * `enqueue` a millisecond.
 */
function says<S extends { readonly pipe: readonly unknown[] }>(schema: S, text: string, notes: Notes = {}): S {
  return { ...schema, pipe: [...schema.pipe, v.description(text), v.metadata({ ...notes })] };
}

const base = says(wait(), "Wait after the first failure, before doubling. After attempt n: base * 2^n, spread, at most max.");
const max = says(wait(), "Longest wait between two attempts; not below base.");
const jitter = says(fraction(), "Share by which each wait is spread at random, so that rows do not return in step.");

/** What both `dispatch` and each of its routes can say. */
const notifyTemplate = says(
  template(),
  "The command that delivers, and its arguments. An element that is exactly a placeholder is replaced; without {payload}, {body} and {text} the envelope comes on stdin.",
  { example: '[notify-seat, --, "{deliver_to}"]' },
);
const timeout = says(timer(1), "How long the command may run before it is ended and counted as failed.");
const ATTEMPTS = "Sends until a dispatch is given up. Not together with retry_for.";
const maxAttempts = says(whole({ min: 1, max: MAX_ATTEMPTS_LIMIT }), ATTEMPTS);
const retryFor = says(
  duration({ minMs: 1, maxMs: MAX_DURATION_MS }),
  "In place of max_attempts: as many attempts as the backoff needs for this time.",
  { example: "3d" },
);
const permanentExitCodes = says(exitCodes(), "Exit codes after which trying again is pointless: the dispatch is dead at once.");
const env = says(environment(), "Added to the command's environment. PATH here finds the command. Not OUTBOX_*.", {
  example: "{ PATH: /usr/local/bin:/usr/bin:/bin }",
});

const backoffOfRoute = says(
  section({ base: v.optional(base), max: v.optional(max), jitter: v.optional(jitter) }),
  "Waits between attempts; what is not set here comes from dispatch.backoff.",
);

const route = says(
  section({
    notify_template: v.optional(notifyTemplate),
    timeout: v.optional(timeout),
    max_attempts: v.optional(maxAttempts),
    retry_for: v.optional(retryFor),
    backoff: v.optional(backoffOfRoute),
    permanent_exit_codes: v.optional(permanentExitCodes),
    env: v.optional(env),
  }),
  "How one kind is sent; what is not set here comes from dispatch.",
);

const dispatch = says(
  section({
    notify_template: v.optional(notifyTemplate),
    timeout: v.optional(timeout, "10s"),
    // No default of its own: resolve.ts must see which of the two was written.
    max_attempts: v.optional(says(maxAttempts, ATTEMPTS, { unset: String(DEFAULT_MAX_ATTEMPTS) })),
    retry_for: v.optional(retryFor),
    backoff: v.optional(
      says(
        section({
          base: v.optional(base, formatDuration(DEFAULT_BACKOFF.baseMs)),
          max: v.optional(max, formatDuration(DEFAULT_BACKOFF.maxMs)),
          jitter: v.optional(jitter, DEFAULT_BACKOFF.jitter),
        }),
        "Waits between attempts.",
      ),
      {},
    ),
    concurrency: v.optional(says(whole({ min: 1, max: 1_024 }), "Commands that run at once, per runner, over all databases."), 8),
    per_destination: v.optional(
      says(whole({ min: 1, max: 1_024 }), "Commands that run at once for one destination of one database, over all runners."),
      4,
    ),
    permanent_exit_codes: v.optional(permanentExitCodes, []),
    on_config_error: v.optional(
      says(oneOf(["wait", "fail"]), "When the command is missing or cannot be executed. wait: nothing is spent; fail: a failed attempt."),
      "wait",
    ),
    circuit: v.optional(
      says(
        section({
          failures: v.optional(
            says(whole({ min: 0, max: 1_000_000 }), "Failures in a row that open a destination's circuit; 0 turns it off."),
            5,
          ),
          cooldown: v.optional(says(timer(1), "How long an open circuit lets nothing through."), "1m"),
        }),
        "Stops sending to a destination that keeps failing.",
      ),
      {},
    ),
    env: v.optional(env, {}),
    routes: v.optional(
      says(
        named(route, (name) => (/^$|\0/.test(name) ? "is no kind; a kind is text without NUL" : null)),
        "Per kind: any of notify_template, timeout, max_attempts or retry_for, backoff, permanent_exit_codes, env.",
        { example: '{ revival_ping: { notify_template: [tmux-ping, --, "{deliver_to}"], timeout: 30s } }' },
      ),
      {},
    ),
  }),
  "How dispatches are sent.",
);

const source = says(path(), "The database file of this name.");

/** The whole file. */
export const FILE = section({
  database: v.optional(
    says(path(), "The database. A relative path starts at the directory of this file.", {
      example: "~/.local/state/outbox/outbox.db",
      unset: "$XDG_STATE_HOME/outbox/outbox.db, else ~/.local/state/outbox/outbox.db",
    }),
  ),
  sources: v.optional(
    says(named(source, wrongSource), "More databases, by name. The one above is called default.", {
      example: "{ shop: /srv/shop/state.db }",
    }),
    {},
  ),
  dispatch: v.optional(dispatch, {}),
  run: v.optional(
    says(
      section({
        interval: v.optional(says(timer(10), "Longest time between two looks at the database."), "30s"),
        shutdown_grace: v.optional(says(timer(0), "How long running commands may take to finish when the runner is told to stop."), "10s"),
      }),
      "The runner.",
    ),
    {},
  ),
  retention: v.optional(
    says(
      section({
        delivered: v.optional(says(age(), "Age at which delivered and acknowledged dispatches are deleted; 0 keeps for ever."), "7d"),
        dead_letter: v.optional(says(age(), "Age at which dead and expired dispatches are deleted; 0 keeps for ever."), "30d"),
        inbox: v.optional(says(age(), "Age at which a consumer's record of handled messages is deleted; 0 keeps for ever."), "30d"),
      }),
      "How long finished work is kept, counted from its last move.",
    ),
    {},
  ),
  limits: v.optional(
    says(
      section({
        payload: v.optional(says(size({ min: 1, max: 256 * MIB }), "Largest body that is accepted."), "1MiB"),
        output: v.optional(
          says(size({ min: 0, max: 64 * MIB }), "How much of a command's output is kept, beginning and end together."),
          "8KiB",
        ),
      }),
      "Sizes.",
    ),
    {},
  ),
  log: v.optional(
    says(
      section({
        level: v.optional(
          says(oneOf(["error", "warn", "info", "debug"]), "What run tells; run --once and other commands say warnings only."),
          "info",
        ),
        format: v.optional(says(oneOf(["text", "json"]), "How it tells it."), "text"),
      }),
      "What the runner says on stderr.",
    ),
    {},
  ),
});

/** The settings as the file states them, defaults filled in, nothing resolved. */
export type File = v.InferOutput<typeof FILE>;
export type Route = v.InferOutput<typeof route>;

/** One thing that is wrong: where, and a message that continues the setting's name. */
export interface Problem {
  readonly path: readonly Key[];
  /** Whether it is the last name of the path that is wrong, or the value there. */
  readonly of: "key" | "value";
  readonly message: string;
}

/** Checks what a YAML parser made of a settings file. An empty file gives null: all defaults. */
export function check(raw: unknown): { readonly file: File } | { readonly problems: readonly Problem[] } {
  if (Array.isArray(raw) || (typeof raw !== "object" && raw !== undefined))
    return {
      problems: [{ path: [], of: "value", message: `the file is ${found(raw)}, must be a mapping: names, each with a colon and a value` }],
    };
  const result = v.safeParse(FILE, raw ?? {});
  if (result.success) return { file: result.output };
  return { problems: result.issues.map((issue) => ({ path: pathOf(issue), of: originOf(issue), message: issue.message })) };
}

function wrongSource(name: string): string | null {
  if (name === "default") return "is the name of database itself; choose another";
  return /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name)
    ? null
    : "is no name for a source; use letters, digits, '_', '-' and '.', at most 64";
}
