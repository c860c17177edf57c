/**
 * What operations cost as finished rows pile up, 10,000 being pending (goal 8): `npm run bench -- --growth`. In memory order, without
 * syncs: a sync costs the same at every size and would hide what grows. The picture is an SVG, cost against size.
 */
import { Database } from "bun:sqlite";
import { checkRequest } from "../../src/core/request.ts";
import { hostEntropy } from "../../src/host.ts";
import { type ClaimTerms, claimNext, recount } from "../../src/store/claim.ts";
import { enqueue } from "../../src/store/enqueue.ts";
import { countPending } from "../../src/store/figures.ts";
import { install } from "../../src/store/migrate.ts";
import { byRef, list, nextMoment } from "../../src/store/queries.ts";
import { TERMS } from "./claim.ts";
import type { Place } from "./place.ts";
import type { Line } from "./report.ts";
import { median, shuffled } from "./rounds.ts";

const NOW = 1_800_000_000;
const PENDING = 10_000;
const TURNS = 101;
export const SIZES: readonly number[] = [1_000, 10_000, 100_000, 1_000_000, 5_000_000];

const COUNTS = "count of pending rows";

interface Operation {
  readonly name: string;
  /** How much dearer the largest may be than the smallest. */
  readonly atMost: number;
  readonly act: (db: Database, turn: number) => unknown;
}

/** Without a limit to stop it. */
const UNLIMITED: ClaimTerms = { ...TERMS, perDestination: 1_000 };

const OPERATIONS: readonly Operation[] = [
  { name: "enqueue", atMost: 1.5, act: (db) => enter(db, null) },
  { name: "enqueue with a new key", atMost: 1.5, act: (db, turn) => enter(db, `new-${turn}`) },
  // The row that has the key lies anywhere in the file.
  { name: "enqueue of a known key", atMost: 4, act: (db, turn) => enter(db, `key-${(turn * 7_919) % 1_000}`) },
  {
    name: "claim of 8",
    atMost: 1.5,
    act: (db) => {
      recount(db, NOW);
      for (let n = 0; n < 8; n += 1) claimNext(db, UNLIMITED, hostEntropy.token());
    },
  },
  { name: "when something is due", atMost: 1.5, act: (db) => nextMoment(db, NOW) },
  { name: "newest page of 50", atMost: 1.5, act: (db) => list(db, { selection: {}, limit: 50, oldestFirst: false, after: null }) },
  { name: "one row by its number", atMost: 1.5, act: (db, turn) => byRef(db, { seq: 1 + ((turn * 7_919) % 1_000) }) },
  { name: COUNTS, atMost: 1.5, act: (db) => countPending(db) },
];

/** Opens a database with so many finished rows and the pending ones. */
function grown(path: string, size: number): Database {
  const db = new Database(path, { create: true, strict: true });
  for (const pragma of ["journal_mode = WAL", "synchronous = OFF", "temp_store = MEMORY"]) db.run(`PRAGMA ${pragma}`);
  install(db);
  fill(db, size);
  db.transaction(() => {
    for (let n = 0; n < PENDING; n += 1) enter(db, null, NOW - 60, n);
  }).immediate();
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  return db;
}

/**
 * Finished rows as years of use leave them: three history rows each, a thousand known keys among them. Written past the triggers,
 * which let no row begin at its end, and which would take an hour for five million; their counters are set afterwards.
 */
function fill(db: Database, size: number): void {
  const triggers = db
    .query<{ name: string; sql: string; view: number }, []>(
      `SELECT name, sql, tbl_name IN (SELECT name FROM sqlite_schema WHERE type = 'view') AS view FROM sqlite_schema WHERE type = 'trigger'`,
    )
    .all()
    .filter(({ view }) => view === 0);
  for (const { name } of triggers) db.run(`DROP TRIGGER ${name}`);
  const moment = `${NOW} - 86400.0 * 30 * (1 - n * 1.0 / ${size})`;
  for (let from = 0; from < size; from += SLICE)
    db.transaction(() => {
      const rows = `WITH RECURSIVE g (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM g WHERE n + 1 < ${Math.min(size, from + SLICE)})`;
      db.run(
        `INSERT INTO dispatch_outbox (id, kind, deliver_to, dedup_key, payload, status, attempt, next_attempt_at, created_at, updated_at, reason_code)
         ${rows} SELECT printf('%032x', n + 1), 'k', 'd' || (n % 50), CASE WHEN n % ${size / 1_000} = 0 THEN 'key-' || (n / ${size / 1_000}) END,
           '{"emitter_role":null,"body":{"text":"' || hex(zeroblob(150)) || '"}}', 'delivered', 1, ${moment}, ${moment}, ${moment},
           'dispatch.delivered.transport_ok' FROM g`,
      );
      for (const [before, after, reason] of [
        ["NULL", "'pending'", "dispatch.pending.enqueued"],
        ["'pending'", "'delivering'", "dispatch.delivering.attempt"],
        ["'delivering'", "'delivered'", "dispatch.delivered.transport_ok"],
      ] as const)
        db.run(
          `INSERT INTO status_transitions (entity_type, entity_id, previous_status, status, reason_code, reason_summary, source, actor, created_at)
           ${rows} SELECT 'dispatch', printf('%032x', n + 1), ${before}, ${after}, '${reason}', '', 'system', 'bench', ${moment} FROM g`,
        );
    }).immediate();
  for (const { sql } of triggers) db.run(sql);
  db.run(`UPDATE dispatch_figures SET delivered = ${size}`);
}
const SLICE = 100_000;

function enter(db: Database, key: string | null, now = NOW, to = 7): void {
  const request = checkRequest({ kind: "k", deliver_to: `d${to % 50}`, ...(key === null ? {} : { dedup_key: key }) });
  enqueue(db, request, now, hostEntropy);
}

/** @param tell is called as each size is ready: the largest takes a quarter of an hour */
export function growth(place: Place, sizes: readonly number[], tell: (text: string) => void): Growth {
  const databases = sizes.map((size) => {
    const began = performance.now();
    const db = grown(place.file(`grown-${size}.db`), size);
    tell(`${size} finished rows and ${PENDING} pending: ${((performance.now() - began) / 1_000).toFixed(0)} s`);
    return db;
  });
  const times = OPERATIONS.map(() => sizes.map((): number[] => []));
  // One operation after the other, each with no page read yet: what another has just read is in a small table more of what it needs.
  for (const [at, { act }] of OPERATIONS.entries()) {
    for (const db of databases) db.run("PRAGMA shrink_memory");
    for (let turn = 0; turn < TURNS; turn += 1)
      for (const which of shuffled(sizes.map((_, index) => index))) {
        const db = databases[which];
        if (db !== undefined) times[at]?.[which]?.push(once(db, turn, act));
      }
  }
  for (const db of databases) db.close();
  return { sizes, operations: OPERATIONS.map(({ name, atMost }, at) => ({ name, atMost, us: (times[at] ?? []).map(median) })) };
}

/** In a transaction that is taken back. @returns microseconds */
function once(db: Database, turn: number, act: Operation["act"]): number {
  db.run("BEGIN IMMEDIATE");
  const began = performance.now();
  act(db, turn);
  const us = (performance.now() - began) * 1_000;
  db.run("ROLLBACK");
  return us;
}

export interface Growth {
  readonly sizes: readonly number[];
  readonly operations: readonly { readonly name: string; readonly atMost: number; readonly us: readonly number[] }[];
}

export function growthLines({ sizes, operations }: Growth): readonly Line[] {
  const between = `${sizes[0]} to ${sizes.at(-1)} finished rows`;
  return operations.map(({ name, atMost, us }): Line => {
    const note = `${us.map((value) => value.toFixed(value < 10 ? 1 : 0)).join(", ")} µs`;
    if (name === COUNTS)
      return { goal: 8, what: `${name}, µs with ${sizes.at(-1)} rows`, value: us.at(-1) ?? null, unit: "", atMost: 10, note };
    return { goal: 8, what: `${name}, ${between}`, value: Math.max(...us.slice(1)) / (us[0] ?? Number.NaN), unit: "x", atMost, note };
  });
}
