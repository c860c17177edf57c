/** `outbox inbox run`: runs a command unless its success is recorded for this message and consumer; afterwards records it. */
import { consumerProblem, DEFAULT_CONSUMER } from "../../core/consumer.ts";
import { type DispatchRef, parseRef } from "../../core/dispatch.ts";
import { OutboxError } from "../../core/errors.ts";
import { ownHolder, standingOf } from "../../host.ts";
import { type Begun, type Inbox, type InboxClaim, openInbox } from "../../store/inbox_store.ts";
import type { OpenTerms } from "../../store/store.ts";
import { type ForegroundTerms, runForeground, type Signal } from "../../transport/foreground.ts";
import { exitCode, OK } from "../exit.ts";
import { quickSettings } from "../handin.ts";
import type { Io } from "../io.ts";
import { complaint, escapeControls, relative } from "../output.ts";
import type { Args } from "../parse.ts";
import { databaseOf, existing } from "../place.ts";
import { argvText, replaced } from "../request.ts";

/** As a shell says that a signal ended a command. */
const INTERRUPTED_BY = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const satisfies Record<Signal, number>;

export async function run(args: Args, io: Io): Promise<number> {
  const { ref, name } = wanted(args, io);
  const consumer = consumerOf(args);
  if (args.rest.some((word) => word.includes("\ufffd"))) throw replaced("the command", "put it into a script");
  const { onSignal } = io.interrupts();
  const first: { signal: Signal | null } = { signal: null };
  onSignal((signal) => (first.signal ??= signal));
  const { settings } = await quickSettings(args, io);
  const database = existing(databaseOf(args, io, settings), io);

  const begun = await withInbox(database, io, (inbox) => inbox.begin(consumer, ref, { holder: ownHolder(), standing: standingOf }));
  if (begun === null) throw new OutboxError("no", `there is no message ${name} in ${database.path}`, "see outbox ls");
  if (begun.outcome === "duplicate") return OK;
  if (begun.outcome === "held") throw held(begun, { name, consumer }, io);
  const work = { database, io, claim: begun.claim };
  // No handle is open while the command runs: it may take long, and what is open would be a hold on the file.
  await io.clock.sleep(0); // a signal that came meanwhile is heard now
  if (first.signal !== null) return ended(work, INTERRUPTED_BY[first.signal]);
  return ended(work, await commandOf({ argv: args.rest, env: io.env, onSignal }, io));
}

/** The command's exit code; what kept it from starting is told. */
async function commandOf(terms: ForegroundTerms, io: Io): Promise<number> {
  const ran = await runForeground(terms);
  switch (ran.kind) {
    case "ended":
      return ran.code;
    case "not started":
      io.err(escapeControls(`outbox: ${ran.error}; mend that and call again, for nothing was run`));
      return ran.code;
    case "exhausted":
      io.err(escapeControls(`outbox: ${ran.error}; try again later`));
      return exitCode("busy");
    default:
      return ran satisfies never;
  }
}

interface Work {
  readonly database: OpenTerms;
  readonly io: Io;
  readonly claim: InboxClaim;
}

/** Records what the command came to. Its success is on disk before anybody hears of it. */
async function ended({ database, io, claim }: Work, code: number): Promise<number> {
  try {
    if (code !== OK) {
      await withInbox(database, io, (inbox) => inbox.abandon(claim));
      return code;
    }
    const recorded = await withInbox(database, io, (inbox) => inbox.complete(claim));
    if (recorded === "completed") return OK;
    io.err("outbox: the command succeeded, and that cannot be recorded: its entry is not ours any more; it may run again");
  } catch (error) {
    // A failed command is not to be covered up by this; the entry of a process that has ended counts for nothing.
    if (code !== OK) return code;
    io.err(complaint(error).replace("outbox: ", "outbox: the command succeeded, and that cannot be recorded, so it may run again: "));
  }
  return exitCode("io");
}

async function withInbox<T>(database: OpenTerms, io: Io, work: (inbox: Inbox) => Promise<T>): Promise<T> {
  const inbox = await openInbox(database, io);
  try {
    return await work(inbox);
  } finally {
    inbox.close();
  }
}

/** @throws OutboxError `usage` */
function wanted(args: Args, io: Io): { readonly ref: DispatchRef; readonly name: string } {
  const [given] = args.words;
  const name = given ?? io.env["OUTBOX_ID"] ?? "";
  if (name === "" && given === undefined)
    throw new OutboxError(
      "usage",
      "inbox run needs ID, since OUTBOX_ID is not set",
      "write the number that ls prints; only a delivered command has its own in the environment",
    );
  const ref = parseRef(name);
  if (ref !== null) return { ref, name };
  const what = given === undefined ? `OUTBOX_ID "${name}"` : `"${name}"`;
  throw new OutboxError("usage", `${what} is no ID`, "write the 32 hex digits, or the number that ls prints");
}

/** @throws OutboxError `data` */
function consumerOf(args: Args): string {
  const name = argvText(args, "consumer", "convert it") ?? DEFAULT_CONSUMER;
  const problem = consumerProblem(name);
  if (problem !== null) throw new OutboxError("data", `--consumer ${problem}`);
  return name;
}

function held(
  begun: Begun & { readonly outcome: "held" },
  { name, consumer }: { readonly name: string; readonly consumer: string },
  io: Io,
): OutboxError {
  const [, host, pid] = /^(.*) ([0-9]+) [0-9]+$/s.exec(begun.holder) ?? [];
  const who = pid === undefined ? begun.holder : `process ${pid} of ${host}`;
  const since = relative(begun.begun_at, io.clock.now());
  return new OutboxError(
    "busy",
    `message ${name} is in work for consumer ${consumer}: ${who} began ${since}`,
    "ask again when it has ended",
  );
}
