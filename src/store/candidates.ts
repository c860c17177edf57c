/**
 * Which rows a change of many looks at: their numbers, read once at its start from the index that names the fewest, in the order
 * of `seq`. So the change ends, whatever comes in or comes back meanwhile, and finished rows that it does not mean cost nothing.
 */
import type { Status } from "../core/lifecycle.ts";
import type { Selection } from "./selection.ts";
import { type Handle, type Params, statement } from "./statement.ts";

/** A selection that says of which statuses. */
export type Targeted = Selection & { readonly status: readonly Status[] };

/**
 * Numbers of rows that may match; each is looked at again before anything is done to it. Every other row does not match now. Eight
 * bytes a row, and of an index alone: a million take a quarter of a second, in which others read and write.
 */
export function candidates(db: Handle, selection: Targeted): number[] {
  const found: number[] = [];
  for (const { sql, params } of lookUps(selection))
    for (const { seq } of statement<{ seq: number }>(db, sql).iterate(params)) found.push(seq);
  return found.toSorted((one, other) => one - other);
}

interface LookUp {
  readonly sql: string;
  readonly params: Params;
}

function lookUps({ status, dedupKey, orderingKey, since, before }: Targeted): readonly LookUp[] {
  if (dedupKey !== undefined && dedupKey.length > 0)
    return [
      {
        sql: `SELECT o.seq FROM (SELECT DISTINCT value FROM json_each($keys)) k CROSS JOIN main.dispatch_outbox o INDEXED BY dispatch_dedup
          WHERE o.dedup_key = k.value AND o.dedup_key IS NOT NULL`,
        params: { keys: JSON.stringify(dedupKey) },
      },
    ];
  const unfinished = [...new Set(status)].filter(isUnfinished);
  const finished = [...new Set(status)].filter((each) => !isUnfinished(each));
  const waiting: readonly LookUp[] =
    unfinished.length > 0 && orderingKey !== undefined && orderingKey.length > 0
      ? [
          {
            sql: `SELECT o.seq FROM (SELECT DISTINCT value FROM json_each($keys)) k CROSS JOIN main.dispatch_outbox o INDEXED BY dispatch_line
              WHERE o.ordering_key = k.value AND o.ordering_key IS NOT NULL AND o.status IN ('pending', 'delivering')`,
            params: { keys: JSON.stringify(orderingKey) },
          },
        ]
      : unfinished.map((each) => ({
          sql: `SELECT seq FROM main.dispatch_outbox INDEXED BY dispatch_due WHERE status IN ('pending', 'delivering') AND status = $status`,
          params: { status: each },
        }));
  const ended = finished.map((each) => ({
    sql: `SELECT seq FROM main.dispatch_outbox INDEXED BY dispatch_finished
      WHERE status NOT IN ('pending', 'delivering') AND status = $status AND updated_at >= $since AND updated_at < $before`,
    params: { status: each, since: since ?? -EVER, before: before ?? EVER },
  }));
  return [...waiting, ...ended];
}

/** Beyond every time that a row can have. */
const EVER = 1e16;

function isUnfinished(status: Status): boolean {
  return status === "pending" || status === "delivering";
}
