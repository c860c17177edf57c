/** From the flags of `enqueue`, or a line of its batch, to a checked request. */
import { attemptsFor, MAX_ATTEMPTS_LIMIT } from "../core/backoff.ts";
import { formatDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import { members, objectProblem, trimJson } from "../core/json.ts";
import { type Origin, ORIGIN_FIELDS } from "../core/origin.ts";
import { checkRequest, type CheckedRequest, type EnqueueRequest } from "../core/request.ts";
import { policyFor, type RoutePolicy, type Settings } from "../settings/settings.ts";
import { readBytes, readLines, utf8 } from "./input.ts";
import type { Io } from "./io.ts";
import { inherited } from "./origin.ts";
import type { Args } from "./parse.ts";
import { duration, timeOrDelay, wholeNumber } from "./values.ts";

/** A batch larger than this is no batch but a migration. It is one transaction, and checked whole before it begins. */
const BATCH_LIMIT = { bytes: 268_435_456, messages: 200_000, hint: "hand it in as several batches" } as const;

/** What the flags say, and how they say it for a kind that is not known yet. */
interface Wish {
  readonly fields: Partial<EnqueueRequest>;
  /** JSON text of the body, if a flag gives one. */
  readonly body: string | undefined;
  readonly retryForMs: number | undefined;
  /** What the environment says of a field of the origin that neither line nor flag names. @throws OutboxError `data` */
  readonly inherited: (field: keyof Origin) => string | undefined;
}

/** What is to be entered. */
export interface Asked {
  readonly requests: readonly CheckedRequest[];
  /** The line of the batch that each stands in; null: they are not of a batch. */
  readonly lines: readonly number[] | null;
}

/** The one request of the flags, or those of the batch. @throws OutboxError `usage`, `data` */
export async function requestsOf(args: Args, io: Io, settings: Settings): Promise<Asked> {
  const batch = args.text("batch");
  if (batch === undefined)
    for (const flag of ["kind", "to"])
      if (args.text(flag) === undefined) throw new OutboxError("usage", `enqueue needs --${flag}`, "see outbox enqueue --help");
  if (batch === "-" && (args.text("body-file") === "-" || args.text("text-file") === "-"))
    throw new OutboxError("usage", "stdin can be read only once", "put the body or the batch into a file");
  const wish = await wishOf(args, io, settings);
  if (batch === undefined) return { requests: [request(wish.fields, wish.body, wish, settings)], lines: null };
  return batchRequests(io, batch, wish, settings);
}

async function wishOf(args: Args, io: Io, settings: Settings): Promise<Wish> {
  const fields = {
    kind: argvText(args, "kind"),
    deliver_to: argvText(args, "to"),
    dedup_key: argvText(args, "dedup-key"),
    ordering_key: argvText(args, "ordering-key"),
    session_id: argvText(args, "session-id"),
    schedule_run_id: argvText(args, "schedule-run-id"),
    emitter_role: argvText(args, "emitter-role"),
    tenant_id: argvText(args, "tenant-id"),
    user_id: argvText(args, "user-id"),
    user_roles: argvText(args, "user-roles"),
    correlation_id: argvText(args, "correlation-id"),
    ack_required: args.on("ack") ? true : undefined,
    max_attempts: maxAttempts(args),
    not_before: timeOrDelay(args, "not-before", "delay", io),
    expires_at: timeOrDelay(args, "expires-at", "expires-in", io),
  };
  if (fields.not_before !== undefined && fields.expires_at !== undefined && fields.expires_at <= fields.not_before) {
    const [expiry, start] = [
      args.text("expires-in") === undefined ? "expires-at" : "expires-in",
      args.text("delay") === undefined ? "not-before" : "delay",
    ];
    throw new OutboxError("usage", `--${expiry} ends it before --${start} lets it begin`, "an expiry lies after the first attempt");
  }
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return {
    fields: given,
    body: await bodyOf(args, io, settings.limits.payloadBytes),
    retryForMs: duration(args, "retry-for"),
    inherited: (field) => inherited(field, io),
  };
}

/** @throws OutboxError `usage` */
export function maxAttempts(args: Args): number | undefined {
  const number = wholeNumber(args, "max-attempts", 1);
  if (number !== undefined && number > MAX_ATTEMPTS_LIMIT)
    throw new OutboxError("usage", `--max-attempts ${number} is more than ${MAX_ATTEMPTS_LIMIT}`, "use fewer");
  return number;
}

async function bodyOf(args: Args, io: Io, limitBytes: number): Promise<string | undefined> {
  const body = argvText(args, "body");
  if (body !== undefined) return body;
  const bodyFile = args.text("body-file");
  if (bodyFile !== undefined) return utf8(await readBytes(io, bodyFile, limitBytes), bodyFile === "-" ? "stdin" : bodyFile);
  const textFile = args.text("text-file");
  const text =
    textFile === undefined
      ? argvText(args, "text")
      : utf8(await readBytes(io, textFile, limitBytes), textFile === "-" ? "stdin" : textFile);
  return text === undefined ? undefined : JSON.stringify({ text });
}

/** Text of the command line, to the letter. A replaced byte could make one key of two. @throws OutboxError `data` */
export function argvText(args: Args, flag: string, hint?: string): string | undefined {
  const text = args.text(flag);
  if (text?.includes("\ufffd") === true) throw replaced(`--${flag}`, hint);
  return text;
}

/** `hint`: what can be done where nothing but argv leads in. */
export function replaced(what: string, hint = "convert it, or use a file or --batch"): OutboxError {
  return new OutboxError("data", `${what} holds bytes that are not UTF-8, or U+FFFD, which stands for them`, hint);
}

async function batchRequests(io: Io, file: string, wish: Wish, settings: Settings): Promise<Asked> {
  const requests: CheckedRequest[] = [];
  const lines: number[] = [];
  await readLines(io, file, BATCH_LIMIT, (bytes, line) => {
    if (bytes.length === 0) return;
    try {
      const text = trimJson(utf8(bytes, "the line"));
      if (text === "") return;
      if (requests.length === BATCH_LIMIT.messages)
        throw new OutboxError("data", `it is more than the ${BATCH_LIMIT.messages} messages that a batch may have`, BATCH_LIMIT.hint);
      requests.push(lineRequest(text, wish, settings));
      lines.push(line);
    } catch (error) {
      if (!(error instanceof OutboxError) || error.kind === "usage") throw error;
      throw new OutboxError("data", `batch line ${line}: ${error.message}; nothing was stored`, error.hint);
    }
  });
  return { requests, lines };
}

function lineRequest(text: string, wish: Wish, settings: Settings): CheckedRequest {
  const problem = objectProblem(text);
  if (problem !== null) throw new OutboxError("data", `it ${problem}`, 'a line is a JSON object such as {"kind": "k", "deliver_to": "d"}');
  const parts = members(text);
  const names = new Set(parts.map((part) => part.name));
  if (names.size < parts.length) throw new OutboxError("data", "it names a field twice", "name each once");
  const body = parts.find((part) => part.name === "body")?.value;
  const { body: _, ...own } = JSON.parse(text) as EnqueueRequest;
  const fields = { ...wish.fields, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== null)) };
  return request(fields, body === undefined || body === "null" ? wish.body : body, wish, settings);
}

/** How often it is sent: as the request says, else as the flags say, else as its kind's route says. */
function request(fields: Partial<EnqueueRequest>, body: string | undefined, wish: Wish, settings: Settings): CheckedRequest {
  const policy = policyFor(settings, fields.kind ?? "") ?? settings.dispatch.default;
  const origin = Object.fromEntries(ORIGIN_FIELDS.map((field) => [field, fields[field] ?? wish.inherited(field)]));
  const counted = fields.max_attempts ?? undefined;
  const asked = counted === undefined && wish.retryForMs !== undefined ? { max_attempts: attempts(wish.retryForMs, policy) } : {};
  // kind and deliver_to may be missing in a batch line: checkRequest() says so.
  return checkRequest(
    { ...fields, ...origin, ...asked } as EnqueueRequest,
    { payloadBytes: settings.limits.payloadBytes, maxAttempts: policy.maxAttempts },
    body,
  );
}

/** Both the flag and the backoff of the settings are right, and do not go together: the flag asked last. */
function attempts(retryForMs: number, policy: RoutePolicy): number {
  try {
    return attemptsFor(retryForMs, policy.backoff);
  } catch (error) {
    if (!(error instanceof OutboxError)) throw error;
    throw new OutboxError(
      "usage",
      `--retry-for ${formatDuration(retryForMs)} cannot be met: ${error.message.replace("retry_for", "it")}`,
      "name a shorter time, or use --max-attempts",
    );
  }
}
