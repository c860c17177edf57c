/** What `enqueue` and `revive` share: settings read the cheap way, one transaction, ids on stdout, warnings on stderr. */
import type { Answer } from "../core/dispatch.ts";
import { ELEMENT_LIMIT, overlongElement } from "../core/element.ts";
import { invariant, OutboxError } from "../core/errors.ts";
import type { CheckedRequest } from "../core/request.ts";
import { homeOf, isNamedButMissing } from "../settings/locate.ts";
import { placeOf } from "../settings/place.ts";
import { readSettings } from "../settings/read.ts";
import { interpret } from "../settings/resolve.ts";
import { type Choice, type Loaded, policyFor, type Settings } from "../settings/settings.ts";
import { type Entry, openEntry } from "../store/entry.ts";
import { exitCode, OK } from "./exit.ts";
import { type Io, StdoutClosed } from "./io.ts";
import { count, escapeControls, jsonLine } from "./output.ts";
import type { Args } from "./parse.ts";
import { choiceOf, databaseOf, made, namedDatabase } from "./place.ts";
import type { Asked } from "./request.ts";

/** Fields in which a duplicate must not differ unnoticed. Bodies and times of a heartbeat differ each time. */
const TOLD = ["kind", "deliver_to", "ack_required", "ordering_key"];

/**
 * The settings. A broken file must not lose a message or an acknowledgement whose database is named without it: then the
 * built-in bounds hold and stderr says so. An untrusted file always stops (it names commands to run).
 */
export async function quickSettings(args: Args, io: Io): Promise<Loaded> {
  const choice = choiceOf(args, io);
  try {
    return await readSettings(choice);
  } catch (error) {
    const isBroken = error instanceof OutboxError && error.kind === "settings" && !isNamedButMissing(choice);
    if (!isBroken || namedDatabase(args, io) === null) throw error;
    warn(io, `${error.message}; using the built-in bounds`);
    return builtIn(choice);
  }
}

function builtIn({ env }: Choice): Loaded {
  const home = homeOf(env);
  const interpreted = interpret(undefined, placeOf(home, home, env));
  invariant("settings" in interpreted, "the built-in settings are wrong");
  return { settings: interpreted.settings, file: null, origin: "built-in" };
}

/** Commits the requests, all or none, and answers with their ids. */
export async function handIn(args: Args, io: Io, settings: Settings, requests: readonly CheckedRequest[]): Promise<number> {
  const answers = await entering(args, io, settings, (entry) => entry.enqueue(requests));
  return tell(args, io, settings, requests, answers);
}

/** The same where each must be new. @throws OutboxError `no` for one that is known: nothing is stored */
export async function handInNew(args: Args, io: Io, settings: Settings, { requests, lines }: Asked): Promise<number> {
  const result = await entering(args, io, settings, (entry) => entry.enqueueNew(requests));
  if (result.outcome === "created") return tell(args, io, settings, requests, result.answers);
  const { at, answer } = result;
  const request = requests[at];
  invariant(request !== undefined, "what is known was asked for");
  if (lines === null) throw known(io, request, answer);
  const before = requests.slice(0, at).findIndex((other) => other.dedup_key === request.dedup_key);
  const whose = before === -1 ? `is taken by ${answer.id} (${answer.status})` : `is that of line ${lines[before]}`;
  throw new OutboxError(
    "no",
    `batch line ${lines[at]}: the dedup key "${request.dedup_key}" ${whose}; nothing was stored`,
    "leave --on-duplicate fail out to get the first id of a known key",
  );
}

/** Opens, does the work, closes whatever happened. */
async function entering<T>(args: Args, io: Io, settings: Settings, work: (entry: Entry) => Promise<T>): Promise<T> {
  const entry = await openEntry(made(databaseOf(args, io, settings), io, args.on("allow-network-fs")), io);
  try {
    return await work(entry);
  } finally {
    await entry.close();
  }
}

/** The error for a message that was to be new; how the first one differs is told here. */
export function known(io: Io, request: CheckedRequest, answer: Answer): OutboxError {
  for (const warning of warningsOfDuplicate(request, answer)) warn(io, warning);
  return new OutboxError("no", `the dedup key is taken by ${answer.id} (${answer.status})`, "leave --on-duplicate fail out to get its id");
}

/** What was committed: warnings first, then the ids. */
export function tell(args: Args, io: Io, settings: Settings, requests: readonly CheckedRequest[], answers: readonly Answer[]): number {
  const now = io.clock.now();
  const warnings = requests.flatMap((request, at) => {
    const answer = answers[at];
    if (answer === undefined) return [];
    return answer.outcome === "created" ? warningsOfCreated(settings, request, now) : warningsOfDuplicate(request, answer);
  });
  // Many seats or lines often share one trouble: it is told once.
  for (const warning of new Set(warnings)) warn(io, warning);
  return print(io, answers, args.on("json"));
}

/** The ids are the answer: where they cannot be written the caller knows nothing, although the rows stand. */
function print(io: Io, answers: readonly Answer[], json: boolean): number {
  try {
    io.out(answers.map((answer) => (json ? jsonLine(answer) : `${answer.id}\n`)).join(""));
    return OK;
  } catch (error) {
    if (!(error instanceof StdoutClosed) && !(error instanceof OutboxError)) throw error;
    const [first] = answers;
    const what =
      answers.length === 1
        ? `the message is stored as ${first?.id}`
        : `${count(answers.length, "message")} are stored, the first as ${first?.id}`;
    io.err(`outbox: ${error.message}; ${what}`);
    return exitCode("io");
  }
}

function warningsOfDuplicate(request: CheckedRequest, answer: Answer): readonly string[] {
  const differing = answer.differs.filter((field) => TOLD.includes(field));
  if (differing.length === 0) return [];
  return [`dedup key "${request.dedup_key}" belongs to ${answer.id}, which has another ${differing.join(" and ")}; the first one stands`];
}

function warningsOfCreated(settings: Settings, request: CheckedRequest, now: number): readonly string[] {
  const warnings: string[] = [];
  if (request.expires_at !== null && request.expires_at <= now)
    warnings.push("the expiry has passed already; the message will end expired and not be sent");
  const tooLong = overlongElement(policyFor(settings, request.kind)?.notifyTemplate ?? [], request);
  if (tooLong !== null)
    warnings.push(
      `the message is longer than {${tooLong}} may be in an argument (${ELEMENT_LIMIT} bytes), so its command cannot start; let the command read it from stdin`,
    );
  return warnings;
}

export function warn(io: Io, text: string): void {
  io.err(`outbox: ${escapeControls(text)}`);
}
