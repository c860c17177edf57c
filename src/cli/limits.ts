/** `outbox stats --check`: which limits are passed. */
import { formatDuration, shortDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import type { Figures } from "../store/store.ts";
import { count } from "./output.ts";
import type { Args } from "./parse.ts";
import { duration, wholeNumber } from "./values.ts";

/** What may just be reached and must not be passed; what is left out has no limit. */
export interface Limits {
  /** How long anything may have been due. */
  readonly ageMs?: number | undefined;
  /** Dead letters there are now. */
  readonly dead?: number | undefined;
  /** Messages that have not come to their end. */
  readonly pending?: number | undefined;
}

/** Without a limit: nothing may wait that long for what is done each minute. Dead letters were told when they died. */
const USUAL: Limits = { ageMs: 15 * 60_000 };

const FLAGS = ["max-age", "max-dead", "max-pending"];

/** @returns null without `--check` */
export function limitsOf(args: Args): Limits | null {
  const given = FLAGS.filter((flag) => args.text(flag) !== undefined);
  if (!args.on("check")) {
    if (given[0] !== undefined) throw new OutboxError("usage", `--${given[0]} is a limit of --check`, "add --check");
    return null;
  }
  const limits = { ageMs: duration(args, "max-age"), dead: wholeNumber(args, "max-dead", 0), pending: wholeNumber(args, "max-pending", 0) };
  return given.length === 0 ? USUAL : limits;
}

/** A sentence for each limit that is passed. */
export function passed({ depth, oldest_due_age: ageS, status }: Figures, limits: Limits): readonly string[] {
  const { ageMs, dead, pending } = limits;
  return [
    ageMs !== undefined && ageS * 1_000 > ageMs
      ? `the oldest due message has waited for ${shortDuration(ageS * 1_000)}, more than ${formatDuration(ageMs)}`
      : null,
    dead !== undefined && status.dead_letter > dead ? `${count(status.dead_letter, "dead letter")}, more than ${dead}` : null,
    pending !== undefined && depth > pending ? `${count(depth, "unfinished message")}, more than ${pending}` : null,
  ].filter((line) => line !== null);
}
