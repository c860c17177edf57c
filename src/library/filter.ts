/** Filters, as programs write them: the names of columns, one value or several. */
import type { Database } from "bun:sqlite";
import { OutboxError } from "../core/errors.ts";
import { REASONS, shortReason, STATUSES, type Status } from "../core/lifecycle.ts";
import { hostClock } from "../host.ts";
import { type Change, CHANGEABLE, changeAll, countRefused } from "../store/changes.ts";
import type { Selection } from "../store/selection.ts";
import { onOurs } from "./handle.ts";
import { bad, boolean, checkOptions, number, texts } from "./input.ts";

/** Which dispatches. All that are given must match; of several values any. */
export interface Filter {
  readonly status?: Status | readonly Status[] | undefined;
  readonly kind?: string | readonly string[] | undefined;
  readonly deliver_to?: string | readonly string[] | undefined;
  readonly dedup_key?: string | readonly string[] | undefined;
  readonly ordering_key?: string | readonly string[] | undefined;
  /** Last word of the reason of the last move: `max_attempts`. */
  readonly reason?: string | readonly string[] | undefined;
  /** Last move at or after, epoch seconds. */
  readonly since?: number | undefined;
  /** Last move before, epoch seconds. */
  readonly before?: number | undefined;
}

/** Which dispatches are changed. One that names nothing is refused: everything is `{ all: true }`. */
export type ChangeFilter = (Filter & { readonly all?: undefined }) | { readonly all: true };

/** What came of a change by filter. */
export interface Changed {
  readonly changed: number;
  /** Those that match and were left: their command runs, or their expiry is in the way. */
  readonly refused: number;
}

export const FILTERS = {
  status: texts,
  kind: texts,
  deliver_to: texts,
  dedup_key: texts,
  ordering_key: texts,
  reason: texts,
  since: number,
  before: number,
};

/**
 * A list that came out empty is refused: read as no filter at all, it would change everything else that matches.
 * @throws OutboxError `data` for a status or reason that is none, and for an empty list
 */
export function selectionOf(filter: Filter): Selection {
  for (const [name, value] of Object.entries(filter))
    if (Array.isArray(value) && value.length === 0) throw bad(`${name} is an empty list`, "name something, or leave it out");
  const { status, kind, deliver_to: to, dedup_key: dedupKey, ordering_key: orderingKey, reason, since, before } = filter;
  const statuses = several(status);
  for (const given of statuses)
    if (!STATUSES.includes(given)) throw new OutboxError("data", `"${given}" is no status`, `the statuses are ${STATUSES.join(", ")}`);
  const words = [...new Set(REASONS.map(shortReason))];
  for (const given of several(reason))
    if (!words.includes(given)) throw bad(`"${given}" is no reason`, `the reasons are ${words.join(", ")}`);
  return {
    status: statuses,
    kind: several(kind),
    to: several(to),
    dedupKey: several(dedupKey),
    orderingKey: several(orderingKey),
    reason: several(reason),
    ...(since === undefined ? {} : { since }),
    ...(before === undefined ? {} : { before }),
  };
}

export interface ChangeOptions {
  readonly actor?: string | undefined;
  readonly dry_run?: boolean | undefined;
}

/** All that match, the oldest first, in the caller's transaction or in one of its own. @throws OutboxError as `retry` */
export function changeBy(db: Database, filter: ChangeFilter, change: Change, options: ChangeOptions): Changed {
  checkOptions("the filters", filter, { ...FILTERS, all: boolean });
  const { all, ...rest } = filter;
  const names = Object.values(rest).filter((value) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  if (all === true && names.length > 0) throw bad("all and a filter exclude each other", "give one of them");
  if (all !== true && names.length === 0) throw bad("the filter names nothing", "write { all: true } for everything");
  const selection = selectionOf(rest);
  const { any } = CHANGEABLE[change.verb];
  const wrong = selection.status?.find((status) => !any.includes(status));
  if (wrong !== undefined) throw bad(`${change.verb} cannot change what is ${wrong}`, `it changes what is ${any.join(" or ")}`);
  const { actor = "library", dry_run: dryRun = false } = options;
  return onOurs(db, () => {
    const { changed, refused } = changeAll(db, { change, selection, actor, dryRun }, hostClock.now());
    return { changed, refused: countRefused(refused) };
  });
}

function several<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}
