/**
 * `retry`, `cancel` and `purge` by filter: batch after batch, with room for others in between. A signal ends it between two of them;
 * what was done until then stays done, and is told.
 */
import { OutboxError } from "../core/errors.ts";
import { CHANGEABLE, countRefused, type ManyTerms, type Selection, type Step, type Tally } from "../store/store.ts";
import { exitCode, INTERRUPTED, OK } from "./exit.ts";
import type { Io } from "./io.ts";
import { count } from "./output.ts";
import type { Args } from "./parse.ts";
import { carefulSettings, databaseOf, existing, withStore } from "./place.ts";
import { tell, type Verb } from "./verb.ts";

/** A lock is waited for in short looks, because a signal waits behind each; altogether as long as by every other command. */
const BUSY_MS = 100;
const PATIENCE_MS = 30_000;
const AGAIN_MS = 50;
/** Between two batches, so that who waits for the write lock gets it: SQLite keeps no queue. */
const ROOM_MS = 25;

type Refused = Tally["refused"];

export async function byFilter(args: Args, io: Io, verb: Verb, selection: Selection): Promise<number> {
  checkStatuses(verb, selection);
  const { settings } = await carefulSettings(args, io);
  const terms = { ...existing(databaseOf(args, io, settings), io), busyMs: BUSY_MS };
  const dryRun = args.on("dry-run");
  const { stop } = io.interrupts();
  const asked: ManyTerms = { selection, change: verb.change, actor: `uid ${io.uid}`, dryRun };
  let step: Step = { changed: 0, refused: NONE, done: false, lastDueAt: null };
  const untilDone = (): Promise<void> =>
    withStore(terms, io, async (store) => {
      const many = store.changeMany(asked);
      while (!step.done && !stop.aborted) {
        step = await patiently(io, stop, () => many.next());
        if (!dryRun && !step.done) await io.clock.sleep(ROOM_MS, stop);
      }
    });
  try {
    await untilDone();
  } catch (error) {
    if (!stop.aborted || !isBusy(error)) {
      if (step.changed > 0) io.err(`outbox: ${count(step.changed, "message")} ${verb.past} before this happened:`);
      throw error;
    }
  }
  const refused = countRefused(step.refused);
  for (const line of refusals(step.refused, verb, dryRun)) io.err(`outbox: ${line}`);
  tell(args, io, verb, { changed: step.changed, refused, lastDueAt: verb.gapS === 0 ? null : step.lastDueAt });
  if (!step.done) {
    io.err(`outbox: interrupted, not all was looked at; the same command goes on with the rest`);
    return stop.reason === "SIGINT" ? INTERRUPTED.SIGINT : INTERRUPTED.SIGTERM;
  }
  return refused > 0 ? exitCode("no") : OK;
}

const NONE: Refused = { wrong_status: 0, live: 0, past_expiry: 0, expires_first: 0 };

function checkStatuses(verb: Verb, { status = [] }: Selection): void {
  const { any } = CHANGEABLE[verb.name];
  const wrong = status.find((each) => !any.includes(each));
  if (wrong !== undefined) throw new OutboxError("usage", `--status ${wrong}: ${verb.from}`, `the statuses are ${any.join(" and ")}`);
}

async function patiently<T>(io: Io, stop: AbortSignal, work: () => Promise<T>): Promise<T> {
  const until = io.clock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || stop.aborted || io.clock.monotonicMs() >= until) throw error;
      await io.clock.sleep(AGAIN_MS, stop);
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof OutboxError && error.kind === "busy";
}

/** A line for each reason. */
function refusals(refused: Refused, verb: Verb, dryRun: boolean): readonly string[] {
  const one = (number: number, singular: string, plural: string): string => (number === 1 ? singular : plural);
  const said: Readonly<Record<keyof Refused, (number: number) => string>> = {
    wrong_status: () => verb.from,
    live: (number) =>
      `${one(number, "its command is", "their commands are")} running; ${verb.name === "purge" ? "wait, or use --force" : `wait for ${one(number, "it", "them")}`}`,
    past_expiry: (number) => `${one(number, "its expiry has passed; give a", "their expiry has passed; give a")} new one with --expires-in`,
    expires_first: (number) =>
      `${one(number, "it would expire before it is", "they would expire before they are")} due; give a later expiry with --expires-in, or a faster --rate`,
  };
  return Object.entries(refused)
    .filter(([, number]) => number > 0)
    .map(([why, number]) => {
      const not = dryRun ? "would not be" : one(number, "was not", "were not");
      return `${count(number, "message")} ${not} ${verb.past}: ${said[why as keyof Refused](number)}`;
    });
}
