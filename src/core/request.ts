/**
 * What a caller asks to be delivered, and its checks. By hand, without a schema library: every enqueue loads this.
 * Library, `--batch` lines and flags use the same names (DESIGN section 10).
 */
import { DEFAULT_MAX_ATTEMPTS, MAX_ATTEMPTS_LIMIT } from "./backoff.ts";
import { OutboxError } from "./errors.ts";
import { objectProblem, trimJson } from "./json.ts";
import { keptRoles, type Origin, ORIGIN_FIELDS, originProblem } from "./origin.ts";
import { bytesOf, textProblem } from "./text.ts";
import { MAX_TIME } from "./time.ts";

export interface EnqueueRequest {
  readonly kind: string;
  readonly deliver_to: string;
  /** A plain object; absent and null are `{}`. */
  readonly body?: object | null | undefined;
  readonly dedup_key?: string | null | undefined;
  /** Dispatches of one key are sent one after the other, in the order in which they were committed. */
  readonly ordering_key?: string | null | undefined;
  readonly ack_required?: boolean | null | undefined;
  readonly max_attempts?: number | null | undefined;
  /** Epoch seconds. */
  readonly expires_at?: number | null | undefined;
  /** Epoch seconds. */
  readonly not_before?: number | null | undefined;
  readonly session_id?: string | null | undefined;
  readonly schedule_run_id?: string | null | undefined;
  readonly emitter_role?: string | null | undefined;
  /** With `user_id`, `user_roles` and `correlation_id` its origin: for whom, and as part of what. At most 64 characters. */
  readonly tenant_id?: string | null | undefined;
  /** At most 64 characters. */
  readonly user_id?: string | null | undefined;
  /** Separated by commas. 512 characters are kept, up to a comma. */
  readonly user_roles?: string | null | undefined;
  /** At most 64 characters. */
  readonly correlation_id?: string | null | undefined;
}

/** A request whose every field is known to be storable. `body` is JSON text. */
export interface CheckedRequest extends Origin {
  readonly kind: string;
  readonly deliver_to: string;
  readonly body: string;
  readonly dedup_key: string | null;
  readonly ordering_key: string | null;
  readonly ack_required: boolean;
  readonly max_attempts: number;
  readonly expires_at: number | null;
  readonly not_before: number | null;
  readonly session_id: string | null;
  readonly schedule_run_id: string | null;
  readonly emitter_role: string | null;
  /** The fields that the caller gave a value: what a duplicate is compared by. */
  readonly asked: ReadonlySet<string>;
}

/** Bounds that the settings may narrow; the library uses these. */
export interface RequestLimits {
  /** Largest body, in bytes of UTF-8. */
  readonly payloadBytes: number;
  /** Attempts for a request that names none. */
  readonly maxAttempts: number;
}
export const DEFAULT_LIMITS: RequestLimits = { payloadBytes: 1_048_576, maxAttempts: DEFAULT_MAX_ATTEMPTS };

/** Largest values, in bytes of UTF-8. They travel through argv and environment, where an element ends at 128 KiB. */
const TEXT_LIMITS = {
  kind: 255,
  deliver_to: 8_192,
  dedup_key: 1_024,
  ordering_key: 1_024,
  session_id: 255,
  schedule_run_id: 255,
  emitter_role: 255,
} as const;
type TextField = keyof typeof TEXT_LIMITS;

const FIELDS: readonly string[] = [
  ...Object.keys(TEXT_LIMITS),
  ...ORIGIN_FIELDS,
  "body",
  "ack_required",
  "max_attempts",
  "expires_at",
  "not_before",
];

/**
 * Checks a request. A body that is already JSON text comes as `bodyJson` and is kept to the letter.
 * @throws OutboxError `data`, naming the field
 */
export function checkRequest(request: EnqueueRequest, limits: RequestLimits = DEFAULT_LIMITS, bodyJson?: string): CheckedRequest {
  // null is absent in every form.
  const bodyText = bodyJson !== undefined && trimJson(bodyJson) === "null" ? undefined : bodyJson;
  if (typeof request !== "object" || request === null || Array.isArray(request))
    throw bad(
      `the request is ${Array.isArray(request) ? "a list" : String(request)}, not an object`,
      'it is one such as { kind: "k", deliver_to: "d" }',
    );
  const given = Object.entries(request).filter(([, value]) => value !== undefined && value !== null);
  for (const [name] of given)
    if (!FIELDS.includes(name)) throw bad(`"${name}" is no field of a request`, `the fields are ${FIELDS.join(", ")}`);
  const notBefore = timeField(request.not_before, "not_before");
  const expiresAt = timeField(request.expires_at, "expires_at");
  if (notBefore !== null && expiresAt !== null && expiresAt <= notBefore)
    throw bad("expires_at does not lie after not_before", "it would expire before it may be sent");
  if (request.ack_required !== undefined && request.ack_required !== null && typeof request.ack_required !== "boolean")
    throw bad("ack_required is neither true nor false");
  const asked = new Set(given.map(([name]) => name));
  if (bodyText !== undefined) asked.add("body");
  return {
    kind: requiredText(request.kind, "kind"),
    deliver_to: requiredText(request.deliver_to, "deliver_to"),
    body: bodyOf(request, bodyText, limits.payloadBytes),
    dedup_key: optionalText(request.dedup_key, "dedup_key"),
    ordering_key: optionalText(request.ordering_key, "ordering_key"),
    ack_required: request.ack_required ?? false,
    max_attempts: attemptsField(request.max_attempts ?? limits.maxAttempts),
    expires_at: expiresAt,
    not_before: notBefore,
    session_id: optionalText(request.session_id, "session_id"),
    schedule_run_id: optionalText(request.schedule_run_id, "schedule_run_id"),
    emitter_role: optionalText(request.emitter_role, "emitter_role"),
    tenant_id: originField(request, "tenant_id"),
    user_id: originField(request, "user_id"),
    user_roles: originField(request, "user_roles"),
    correlation_id: originField(request, "correlation_id"),
    asked,
  };
}

function bodyOf(request: EnqueueRequest, bodyText: string | undefined, limit: number): string {
  const text = bodyText ?? serialise(request.body);
  // A UTF-16 unit is at least one byte, so a text too long by units is refused before it is measured and scanned.
  const bytes = text.length > limit ? text.length : bytesOf(text);
  if (bytes > limit)
    throw bad(
      `the body has ${text.length > limit ? "at least " : ""}${bytes} bytes; the limit is ${limit}`,
      "send a reference instead, or raise limits.payload",
    );
  const trimmed = trimJson(text);
  const problem = objectProblem(trimmed);
  if (problem !== null) throw bad(`the body ${problem}`, 'a body is a JSON object such as {"n": 1}');
  return trimmed;
}

/** Once, and only here: the text is what every attempt sends. */
function serialise(body: object | null | undefined): string {
  if (body === undefined || body === null) return "{}";
  if (typeof body !== "object" || Array.isArray(body))
    throw bad(`the body is ${Array.isArray(body) ? "an array" : `a ${typeof body}`}, not an object`);
  // An Error or a Map would be written as {}, bytes as an object of numbers, a Date as a text.
  const type = Object.prototype.toString.call(body).slice("[object ".length, -1);
  if (type !== "Object") throw bad(`the body is of the type ${type}, which JSON does not keep`, "use a plain object");
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    throw bad(`the body cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text === undefined) throw bad("the body has no JSON form");
  return text;
}

function requiredText(value: unknown, field: TextField): string {
  const text = optionalText(value, field);
  if (text === null) throw bad(`${field} is missing`);
  return text;
}

function optionalText(value: unknown, field: TextField): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw bad(`${field} is not a text`);
  const problem = textProblem(value, TEXT_LIMITS[field]);
  if (problem !== null) throw bad(`${field} ${problem}`);
  return value;
}

function originField(request: EnqueueRequest, field: keyof Origin): string | null {
  const value: unknown = request[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw bad(`${field} is not a text`);
  const problem = originProblem(field, value);
  if (problem !== null) throw bad(`${field} ${problem}`);
  return field === "user_roles" ? keptRoles(value) : value;
}

function attemptsField(value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > MAX_ATTEMPTS_LIMIT)
    throw bad(`max_attempts is not a whole number from 1 to ${MAX_ATTEMPTS_LIMIT}`);
  return value;
}

function timeField(value: unknown, field: string): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "number" || !(value >= 0 && value <= MAX_TIME))
    throw bad(`${field} is not a time in epoch seconds between 1970 and 9999`);
  return value;
}

function bad(message: string, hint = ""): OutboxError {
  return new OutboxError("data", message, hint);
}
