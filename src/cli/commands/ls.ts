/** `outbox ls`: a page of dispatches, without payload and tokens. */
import { shortDuration } from "../../core/duration.ts";
import { OutboxError } from "../../core/errors.ts";
import { nextMove } from "../../core/explain.ts";
import type { Store } from "../../store/store.ts";
import { OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { type Column, jsonLine, table } from "../output.ts";
import type { Args } from "../parse.ts";
import { onDatabase } from "../place.ts";
import { listedJson } from "../rows.ts";
import { selectionOf } from "../selection.ts";
import { afterSeq, wholeNumber } from "../values.ts";

type Row = Awaited<ReturnType<Store["list"]>>[number];

const DEFAULT_LIMIT = 50;
/** Rows fetched at once, so that `--limit 0` of a million rows is written as it is read. */
const CHUNK = 500;

const KEY: Column = { title: "KEY", elastic: true };
const COLUMNS: readonly Column[] = [
  { title: "SEQ", right: true },
  { title: "STATUS" },
  { title: "KIND", elastic: true },
  { title: "TO", elastic: true },
  KEY,
  { title: "ATTEMPT", right: true },
  { title: "NEXT", elastic: true },
  { title: "AGE", right: true },
];

export function run(args: Args, io: Io): Promise<number> {
  const selection = selectionOf(args, io);
  const limit = wholeNumber(args, "limit", 0) ?? DEFAULT_LIMIT;
  const after = args.text("after");
  const afterRef = after === undefined ? null : afterSeq(after);
  return onDatabase(args, io, async (store) => {
    const pages = chunks(store, {
      selection,
      limit,
      oldestFirst: args.on("oldest"),
      after: afterRef === null ? null : await seqOf(store, afterRef),
    });
    const shown = args.on("json") ? await printJson(pages, io) : await printTable(pages, io);
    if (shown === 0) io.err(Object.keys(selection).length === 0 ? "outbox: there are no messages" : "outbox: no message matches");
    return OK;
  });
}

async function seqOf(store: Store, ref: ReturnType<typeof afterSeq>): Promise<number> {
  if ("seq" in ref) return ref.seq;
  const found = await store.find(ref);
  if (found === null)
    throw new OutboxError("no", `there is no message ${ref.id}`, "give the number that ls prints: it works after the row is gone, too");
  return found.row.seq;
}

async function* chunks(store: Store, page: Parameters<Store["list"]>[0]): AsyncGenerator<readonly Row[]> {
  let { after } = page;
  for (let left = page.limit === 0 ? Number.POSITIVE_INFINITY : page.limit; left > 0;) {
    const rows = await store.list({ ...page, after, limit: Math.min(left, CHUNK) });
    if (rows.length > 0) yield rows;
    if (rows.length < CHUNK) return;
    after = rows.at(-1)?.seq ?? null;
    left -= rows.length;
  }
}

async function printJson(pages: AsyncIterable<readonly Row[]>, io: Io): Promise<number> {
  let shown = 0;
  for await (const rows of pages) {
    io.out(rows.map((row) => jsonLine(listedJson(row))).join(""));
    shown += rows.length;
  }
  return shown;
}

/** Widths need every row, so a table is laid out once all are there. */
async function printTable(pages: AsyncIterable<readonly Row[]>, io: Io): Promise<number> {
  const now = io.clock.now();
  const cells: string[][] = [];
  for await (const rows of pages) {
    for (const row of rows) {
      const attempt = `${row.attempt}/${row.max_attempts}`;
      cells.push([
        String(row.seq),
        row.status,
        row.kind,
        row.deliver_to,
        row.ordering_key ?? "",
        attempt,
        nextMove(row, now, row),
        shortDuration(Math.max(0, now - row.created_at) * 1_000),
      ]);
    }
  }
  // Where no message has an ordering key, its column would only be in the way.
  const at = COLUMNS.indexOf(KEY);
  const keyed = cells.some((row) => row[at] !== "");
  const shown = <T>(row: readonly T[]): readonly T[] => (keyed ? row : row.toSpliced(at, 1));
  if (cells.length > 0) io.out(table(shown(COLUMNS), cells.map(shown), io.terminal()));
  return cells.length;
}
