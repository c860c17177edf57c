/**
 * What a command is given of one dispatch: its arguments, its stdin and its environment (DESIGN section 7). Values of the row
 * reach it as whole argv elements, whole environment values and bytes on stdin, never as a part of anything.
 */
import { rawBody, textOf } from "./body.ts";
import type { Dispatch } from "./dispatch.ts";
import { expand, type Placeholder, usesStdin } from "./template.ts";

/** What a message is made of, apart from its row. */
export interface MessageSettings {
  readonly template: readonly string[];
  /** The runner's own environment. */
  readonly runnerEnv: Readonly<Record<string, string | undefined>>;
  /** `env` of the settings, that of the route already merged over the common one. */
  readonly settingsEnv: Readonly<Record<string, string>>;
  /** Absolute path of the database that holds the row. */
  readonly database: string;
  /** Absolute path of the settings file; null when there is none. */
  readonly config: string | null;
}

/** The parts of a transport's job that come from the row. */
export interface Message {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
}

/** Turns a claimed row into what its command gets. `dispatch.attempt` is the number of the attempt that begins. */
export function messageOf(dispatch: Dispatch, settings: MessageSettings): Message {
  return {
    argv: expand(settings.template, (name) => placeholderValue(dispatch, name)),
    env: environmentOf(dispatch, settings),
    stdin: usesStdin(settings.template) ? new TextEncoder().encode(dispatch.payload) : new Uint8Array(),
  };
}

/** What takes the place of `{name}`. A field that the row lacks is an empty element, so that the others keep their places. */
export function placeholderValue(dispatch: Dispatch, name: Placeholder): string {
  switch (name) {
    case "payload":
    case "deliver_to":
    case "kind":
    case "id":
      return dispatch[name];
    case "attempt":
      return String(dispatch.attempt);
    case "ack_token":
    case "dedup_key":
    case "correlation_id":
      return dispatch[name] ?? "";
    case "body":
      return rawBody(dispatch.payload) ?? "";
    case "text":
      return textOf(rawBody(dispatch.payload) ?? "");
    default:
      return name satisfies never;
  }
}

/**
 * The whole environment of the command: the runner's, the settings' over it, the row's over both. A name whose field the row
 * lacks is removed, so that a command never answers for the dispatch that started its runner.
 */
export function environmentOf(dispatch: Dispatch, settings: Omit<MessageSettings, "template">): Record<string, string> {
  const ours: Record<string, string | null> = {
    OUTBOX_ID: dispatch.id,
    OUTBOX_KIND: dispatch.kind,
    OUTBOX_DELIVER_TO: dispatch.deliver_to,
    OUTBOX_ATTEMPT: String(dispatch.attempt),
    OUTBOX_MAX_ATTEMPTS: String(dispatch.max_attempts),
    OUTBOX_ACK_TOKEN: dispatch.ack_token,
    OUTBOX_DEDUP_KEY: dispatch.dedup_key,
    OUTBOX_ORDERING_KEY: dispatch.ordering_key,
    OUTBOX_TENANT_ID: dispatch.tenant_id,
    OUTBOX_USER_ID: dispatch.user_id,
    OUTBOX_USER_ROLES: dispatch.user_roles,
    OUTBOX_CORRELATION_ID: dispatch.correlation_id,
    OUTBOX_DB: settings.database,
    OUTBOX_CONFIG: settings.config,
  };
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...settings.runnerEnv, ...settings.settingsEnv, ...ours }))
    if (typeof value === "string") env[name] = value;
  return env;
}
