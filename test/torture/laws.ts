/**
 * What holds in every database of ours at every moment: after a kill, after a power loss, on a disk that failed. Plain functions
 * over a handle; each answers with what is broken, in a sentence, and with nothing when all is well.
 */
import type { Database } from "bun:sqlite";
import type { Dispatch, Transition } from "../../src/core/dispatch.ts";
import { EDGES } from "../../src/core/lifecycle.ts";
import { breaches } from "../../src/store/invariants.ts";
import { ownership } from "../../src/store/ownership.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";

/** A move that somebody was told of, or that a command which started proves. */
export interface Told {
  readonly id: string;
  readonly reason: string;
  /** The attempt, where the move has one. */
  readonly attempt: number | null;
}

/** What was answered so far, and so may never be lost. */
export interface Promised {
  readonly ids: readonly string[];
  readonly moves: readonly Told[];
  /** What was answered to be deleted. */
  readonly gone: readonly string[];
}

export const NOTHING: Promised = { ids: [], moves: [], gone: [] };

/** The edges as text, for a quick look. */
const LAWFUL: ReadonlySet<string> = new Set(EDGES.map(({ from, to, reason }) => `${from ?? ""} ${to} ${reason}`));
/** An attempt that is given back: what never started costs nothing (DESIGN section 3). */
const GIVEN_BACK: ReadonlySet<string> = new Set(["dispatch.pending.released", "dispatch.pending.config_fault"]);
const ENDED: ReadonlySet<string> = new Set(["delivered", "acked", "dead_letter", "expired"]);

export type Row = Pick<
  Dispatch,
  "id" | "seq" | "status" | "attempt" | "max_attempts" | "reason_code" | "dedup_key" | "ack_required" | "kind" | "deliver_to"
>;
export type Move = Pick<Transition, "entity_id" | "previous_status" | "status" | "reason_code"> & { readonly attempt: number | null };

/** All rows, in the order of their entry. */
export function rowsOf(db: Database): Row[] {
  return db
    .query<Row, []>(
      "SELECT id, seq, status, attempt, max_attempts, reason_code, dedup_key, ack_required, kind, deliver_to FROM dispatch_outbox ORDER BY seq",
    )
    .all();
}

/** All moves, in their order. */
export function movesOf(db: Database): Move[] {
  return db
    .query<Move, []>(
      "SELECT entity_id, previous_status, status, reason_code, json_extract(metadata, '$.attempt') AS attempt FROM status_transitions WHERE entity_type = 'dispatch' ORDER BY id",
    )
    .all();
}

/**
 * Every law. Nothing may be promised of a file that holds no tables yet.
 * @param now epoch seconds
 */
export function broken(db: Database, now: number, promised: Promised): string[] {
  const whole = notWhole(db);
  if (whole.length > 0) return whole;
  const owner = ownership(db);
  if (owner.whose === "foreign") return ["the file has tables, and the schema is not among them"];
  if (owner.whose === "nobody") return lost([], [], promised);
  const rows = rowsOf(db);
  const moves = movesOf(db);
  return [
    ...unlawful(rows, moves),
    ...lost(rows, moves, promised),
    ...(owner.version === SCHEMA_VERSION ? breaches(db, now).map(({ what, deliver_to, seq }) => `${what}: ${seq ?? deliver_to}`) : []),
  ];
}

/** Whether SQLite finds the file whole, with every constraint kept. */
function notWhole(db: Database): string[] {
  const found = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
  const strays = db.query("PRAGMA foreign_key_check").all();
  return [
    ...found.filter(({ integrity_check }) => integrity_check !== "ok").map(({ integrity_check }) => `integrity: ${integrity_check}`),
    ...(strays.length > 0 ? [`${strays.length} rows break a foreign key`] : []),
  ];
}

/** The history of every row: lawful, without a gap, ending where the row is; its attempts counted as section 3 counts them. */
export function unlawful(rows: readonly Row[], moves: readonly Move[]): string[] {
  const histories = Map.groupBy(moves, ({ entity_id }) => entity_id);
  const found: string[] = [];
  for (const row of rows) {
    const own = histories.get(row.id) ?? [];
    histories.delete(row.id);
    let status: string | null = null;
    let attempt = 0;
    for (const move of own) {
      if (move.previous_status !== status)
        found.push(`${row.id}: a gap in its history: it was ${status}, and left ${move.previous_status}`);
      if (!LAWFUL.has(`${move.previous_status ?? ""} ${move.status} ${move.reason_code}`))
        found.push(`${row.id}: an unlawful move: ${move.previous_status} to ${move.status}, ${move.reason_code}`);
      if (move.status === "delivering") attempt += 1;
      else if (GIVEN_BACK.has(move.reason_code)) attempt -= 1;
      else if (move.reason_code === "dispatch.pending.operator_retry") attempt = 0;
      if (move.status === "delivering" && move.attempt !== attempt)
        found.push(`${row.id}: claim ${attempt} is noted as attempt ${move.attempt}`);
      if (attempt > row.max_attempts) found.push(`${row.id}: ${attempt} claims, ${row.max_attempts} allowed`);
      ({ status } = move);
    }
    if (own.length === 0) found.push(`${row.id}: no history`);
    else if (status !== row.status || own.at(-1)?.reason_code !== row.reason_code)
      found.push(`${row.id}: is ${row.status} (${row.reason_code}), its history ends ${status} (${own.at(-1)?.reason_code})`);
    if (attempt !== row.attempt) found.push(`${row.id}: attempt ${row.attempt}, its history counts ${attempt}`);
  }
  return [...found, ...[...histories.keys()].map((id) => `${id}: a history without a row`), ...twice(rows)];
}

function twice(rows: readonly Row[]): string[] {
  const keyed = Map.groupBy(
    rows.filter(({ dedup_key }) => dedup_key !== null),
    ({ dedup_key }) => dedup_key,
  );
  return [...keyed].filter(([, same]) => same.length > 1).map(([key, same]) => `the key ${key} is on ${same.length} rows`);
}

/** What was answered and is not there. */
export function lost(rows: readonly Row[], moves: readonly Move[], { ids, moves: told, gone }: Promised): string[] {
  const there = new Set(rows.map(({ id }) => id));
  const made = counted(moves.map(({ entity_id, reason_code, attempt }) => `${entity_id} ${reason_code} ${attempt}`));
  const wanted = counted(told.map(({ id, reason, attempt }) => `${id} ${reason} ${attempt}`));
  return [
    ...ids.filter((id) => !there.has(id)).map((id) => `lost: ${id} was answered`),
    ...[...wanted].filter(([move, times]) => (made.get(move) ?? 0) < times).map(([move]) => `lost: the move ${move} was answered`),
    ...gone.filter((id) => there.has(id)).map((id) => `back again: ${id} was answered to be deleted`),
  ];
}

function counted(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** Rows that have not come to their end. */
export function open(rows: readonly Row[]): string[] {
  return rows.filter(({ status }) => !ENDED.has(status)).map(({ id, status }) => `${id}: came to no end, it is ${status}`);
}

/** One note of a command: `start ID ATTEMPT PID` or `end ID ATTEMPT PID CODE`. */
export interface Note {
  readonly what: "start" | "end";
  readonly id: string;
  readonly attempt: number;
  readonly pid: number;
  readonly code: number | null;
}

/** The notes of a log, in their order. A line that is not whole belongs to a command that was killed. */
export function notesOf(log: string): Note[] {
  return log.split("\n").flatMap((line) => {
    const [, what, id = "", attempt, pid, code] = /^(start|end) ([0-9a-f]{32}) (\d+) (\d+)(?: (\d+))?$/.exec(line) ?? [];
    if (what !== "start" && what !== "end") return [];
    return [{ what, id, attempt: Number(attempt), pid: Number(pid), code: code === undefined ? null : Number(code) }];
  });
}

/** What the commands say against the history: a claim starts at most one command, and no command starts without its claim. */
export function unclaimed(rows: readonly Row[], moves: readonly Move[], notes: readonly Note[]): string[] {
  const claims = counted(moves.filter(({ status }) => status === "delivering").map(({ entity_id, attempt }) => `${entity_id} ${attempt}`));
  const starts = counted(notes.filter(({ what }) => what === "start").map(({ id, attempt }) => `${id} ${attempt}`));
  const succeeded = new Set(notes.filter(({ what, code }) => what === "end" && code === 0).map(({ id }) => id));
  const known = new Set(moves.map(({ entity_id }) => entity_id)); // what was deleted has lost its claims too
  return [
    ...[...starts]
      .filter(([start, times]) => known.has(start.split(" ")[0] ?? "") && times > (claims.get(start) ?? 0))
      .map(([start, times]) => `${start}: ${times} commands, ${claims.get(start) ?? 0} claims`),
    ...rows
      .filter(({ id, status }) => status === "delivered" && !succeeded.has(id))
      .map(({ id }) => `${id}: delivered, and no command took it`),
  ];
}
