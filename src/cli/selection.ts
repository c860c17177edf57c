/** The filters of `ls` and of the commands that change what they name. */
import { OutboxError } from "../core/errors.ts";
import { REASONS, shortReason, STATUSES, type Status } from "../core/lifecycle.ts";
import { nearest } from "../core/nearest.ts";
import type { Selection } from "../store/store.ts";
import type { Io } from "./io.ts";
import type { Args } from "./parse.ts";
import { replaced } from "./request.ts";
import { time } from "./values.ts";

/** What the flags name; empty: nothing was given. @throws OutboxError `usage`, and `data` for text with bytes replaced */
export function selectionOf(args: Args, io: Io): Selection {
  const [since, before] = [time(args, "since", io, true), time(args, "before", io, true)];
  const lists = {
    status: statuses(args),
    kind: argvTexts(args, "kind"),
    to: argvTexts(args, "to"),
    dedupKey: argvTexts(args, "dedup-key"),
    orderingKey: argvTexts(args, "ordering-key"),
    reason: reasons(args),
  };
  const given = Object.fromEntries(Object.entries(lists).filter(([, values]) => values.length > 0));
  return { ...given, ...(since === undefined ? {} : { since }), ...(before === undefined ? {} : { before }) };
}

export type Target = { readonly by: "ids" } | { readonly by: "filter"; readonly selection: Selection };

/** What a command is to change. Nothing by default, and never two readings of one line. @throws OutboxError `usage` */
export function targetOf(args: Args, io: Io, command: string): Target {
  const selection = selectionOf(args, io);
  const [ids, filtered, all] = [args.words.length > 0, Object.keys(selection).length > 0, args.on("all")];
  const see = `see outbox ${command} --help`;
  if (ids && (filtered || all))
    throw new OutboxError("usage", `${command} takes IDs or ${all ? "--all" : "a filter"}, not both`, "leave one of them out");
  if (filtered && all) throw new OutboxError("usage", "--all and a filter exclude each other", "give one of them");
  if (ids) return { by: "ids" };
  if (filtered || all) return { by: "filter", selection };
  throw new OutboxError("usage", `${command} needs an ID, a filter or --all`, see);
}

function statuses(args: Args): readonly Status[] {
  return args.list("status").map((text) => {
    const status = STATUSES.find((each) => each === text);
    if (status !== undefined) return status;
    const meant = nearest(text, STATUSES);
    throw new OutboxError(
      "usage",
      `--status "${text}" is no status`,
      meant === null ? `one of ${STATUSES.join(", ")}` : `did you mean ${meant}?`,
    );
  });
}

/** Reasons by their last word, as lists print them. */
function reasons(args: Args): readonly string[] {
  const known = [...new Set(REASONS.map(shortReason))];
  return args.list("reason").map((text) => {
    if (known.includes(text)) return text;
    const hint = REASONS.some((reason) => reason === text) ? `write its last word alone: ${shortReason(text)}` : null;
    const meant = nearest(text, known);
    throw new OutboxError(
      "usage",
      `--reason "${text}" is no reason`,
      hint ?? (meant === null ? `one of ${known.join(", ")}` : `did you mean ${meant}?`),
    );
  });
}

function argvTexts(args: Args, flag: string): readonly string[] {
  const texts = args.list(flag);
  if (texts.some((text) => text.includes("\ufffd"))) throw replaced(`--${flag}`, "convert it, or name messages by their numbers");
  return texts;
}
