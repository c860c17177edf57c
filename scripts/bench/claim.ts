/**
 * What a claim costs when 100,000 rows cannot move, beside what it costs when nothing is in its way (goal 9); and what the caches of
 * the claim cost an enqueue and a settle. By itself: `bun scripts/bench/claim.ts [CASE...]`; ROWS=100000 to change the load. A goal is
 * a ratio within one run (1.5): absolute times drift between runs and machines.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostEntropy } from "../../src/host.ts";
import { type ClaimTerms, claimNext, recount } from "../../src/store/claim.ts";
import { hold, noteFailure, resume } from "../../src/store/gates.ts";
import { install, MIGRATIONS } from "../../src/store/migrate.ts";
import type { Line } from "./report.ts";

const NOW = 1_800_000_000;
const ROWS = Number(process.env["ROWS"] ?? 100_000);
const TURNS = 151;
const LONGEST_MS = 2_500;
const HELD = { deliverTo: null, kind: "held", orderingKey: null };

const place = mkdtempSync(join(tmpdir(), "outbox-bench-"));
process.on("exit", () => rmSync(place, { recursive: true, force: true }));

let databases = 0;
function open(synchronous: "OFF" | "FULL", schema: readonly string[] = MIGRATIONS): Database {
  const db = new Database(join(place, `${(databases += 1)}.db`), { create: true, readwrite: true, strict: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run(`PRAGMA synchronous = ${synchronous}`);
  db.run("PRAGMA temp_store = MEMORY"); // as our own handles have it
  install(db, schema);
  return db;
}

interface Rows {
  readonly count: number;
  readonly kind?: string;
  /** SQL over `n`, 0 and on. */
  readonly to: string;
  readonly key?: string;
  readonly due?: string;
  readonly expires?: string;
}

let entered = 0;

/** Enters rows, one statement for all. Ids rise with time, as real ones do: the index of the history lives from it. */
function enter(db: Database, rows: Rows): void {
  entered += 1_000_000;
  db.run(
    `INSERT INTO dispatch_outbox (id, kind, deliver_to, ordering_key, payload, next_attempt_at, expires_at, created_at, updated_at)
     WITH RECURSIVE g (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM g WHERE n + 1 < ${rows.count})
     SELECT printf('%032x', n + ${entered}), '${rows.kind ?? "ping"}', ${rows.to}, ${rows.key ?? "NULL"}, '{"body":"' || hex(zeroblob(190)) || '"}',
       ${rows.due ?? `${NOW - 80_000} + n * 0.5`}, ${rows.expires ?? "NULL"}, ${NOW - 90_000}, ${NOW - 90_000} FROM g`,
  );
}

/** A thousand rows on fifty destinations: what can be claimed in every case. */
function others(db: Database): void {
  enter(db, { count: 1_000, to: "'ok' || (n % 50)", key: "CASE WHEN n % 2 THEN 'own' || n END", due: `${NOW - 1_000} + n * 0.5` });
}

function claimRows(db: Database, where: string, leaseEnd = NOW + 60): void {
  db.run(
    `UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 't' || seq,
       next_attempt_at = ${leaseEnd}, updated_at = ${NOW} WHERE ${where}`,
  );
}

function failRows(db: Database, where: string): void {
  claimRows(db, where);
  db.run(
    `UPDATE dispatch_outbox SET status = 'pending', reason_code = 'dispatch.pending.retry_backoff', lock_token = NULL,
       next_attempt_at = ${NOW + 600}, updated_at = ${NOW} WHERE ${where}`,
  );
}

function openCircuits(db: Database, names: readonly string[]): void {
  for (const name of names) noteFailure(db, name, { failures: 1, cooldownS: 60 }, NOW - 10);
}

interface Case {
  readonly name: string;
  readonly load: (db: Database) => void;
  readonly terms?: Partial<ClaimTerms>;
  /** Not among the goals: a fault, which a person must mend, or a moment that passes. */
  readonly apart?: true;
}

const saturated = (count: number): Case => ({
  name: `${count} saturated destinations in front`,
  load: (db) => {
    enter(db, { count: ROWS, to: `'bad' || (n % ${count})` });
    claimRows(db, `seq <= ${count * 4}`);
    others(db);
  },
});

const CASES: readonly Case[] = [
  { name: "nothing blocked", load: others },
  {
    name: "one failing key",
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad'", key: "'K'" });
      failRows(db, "seq = 1");
      others(db);
    },
  },
  {
    name: "one failing key, same destination",
    load: (db) => {
      enter(db, { count: ROWS, to: "'ok7'", key: "'K'" });
      failRows(db, "seq = 1");
      others(db);
    },
  },
  {
    name: "one saturated destination",
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad'" });
      claimRows(db, "seq <= 4");
      others(db);
    },
  },
  saturated(64),
  saturated(256),
  {
    name: "one open circuit",
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad'" });
      openCircuits(db, ["bad"]);
      others(db);
    },
  },
  {
    name: "10,000 open circuits",
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad' || (n % 10000)" });
      openCircuits(
        db,
        Array.from({ length: 10_000 }, (_, n) => `bad${n}`),
      );
      others(db);
    },
  },
  {
    name: "a held kind",
    load: (db) => {
      enter(db, { count: ROWS, to: "'ok' || (n % 50)", kind: "held" });
      others(db);
      const began = performance.now();
      hold(db, HELD, { now: NOW, endsAt: null, note: null, actor: "bench" });
      held.beganMs = performance.now() - began;
    },
  },
  {
    name: "10,000 failing keys with tails",
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad' || (n % 100)", key: "'K' || (n % 10000)" });
      failRows(db, "seq <= 10000");
      others(db);
    },
  },
  {
    name: "all due, 50 destinations",
    load: (db) => enter(db, { count: ROWS, to: "'ok' || (n % 50)", key: "CASE WHEN n % 2 THEN 'own' || n END" }),
  },
  { name: "all due, 10,000 destinations", load: (db) => enter(db, { count: ROWS, to: "'ok' || (n % 10000)" }) },
  {
    name: "64 destinations with one claim each",
    load: (db) => {
      enter(db, { count: ROWS, to: "'ok' || (n % 64)" });
      claimRows(db, "seq <= 64");
    },
  },
  {
    name: "all of one destination expired",
    apart: true,
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad'", expires: `${NOW - 1}` });
      others(db);
    },
  },
  {
    name: "all of 10,000 destinations expired",
    apart: true,
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad' || (n % 10000)", expires: `${NOW - 1}` });
      others(db);
    },
  },
  {
    name: "a faulty route, one destination",
    apart: true,
    terms: { kinds: new Map([["faulty", null]]) },
    load: (db) => {
      enter(db, { count: ROWS, to: "'bad'", kind: "faulty" });
      others(db);
    },
  },
];

const held = { beganMs: 0, resumedMs: 0 };
/** What a runner claims by: all that is due, with a lease of 15 s. */
export const TERMS: ClaimTerms = {
  now: NOW,
  dueBy: NOW,
  holder: "bench 1 1",
  fallbackLeaseS: 15,
  kinds: new Map(),
  perDestination: 4,
  circuits: true,
  inHand: [],
  alive: [],
};

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function quarter(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 2] ?? Number.NaN;
}

/** Claims `n` in one transaction and takes it back. @returns microseconds, and how many it got */
function once(db: Database, n: number, terms: ClaimTerms): { readonly us: number; readonly got: number } {
  db.run("BEGIN IMMEDIATE");
  const began = performance.now();
  recount(db, NOW);
  let got = 0;
  while (got < n && claimNext(db, terms, hostEntropy.token()) !== null) got++;
  const us = (performance.now() - began) * 1_000;
  db.run("ROLLBACK");
  return { us, got };
}

interface Timed {
  readonly us: number;
  readonly got: number;
  readonly ratio: number;
}

/** The case and the empty one by turns, so that a busy machine slows both; the lower quartile of each. */
function timeClaim(empty: Database, db: Database, n: number, terms: ClaimTerms): Timed {
  const times: { readonly empty: number[]; readonly full: number[] } = { empty: [], full: [] };
  let got = 0;
  const end = performance.now() + LONGEST_MS;
  for (let turn = 0; turn < TURNS && performance.now() < end; turn++) {
    times.empty.push(once(empty, n, TERMS).us);
    const full = once(db, n, terms);
    times.full.push(full.us);
    got = full.got;
  }
  const us = quarter(times.full);
  return { us, got, ratio: us / quarter(times.empty) };
}

interface Claimed {
  readonly name: string;
  readonly apart: boolean;
  /** For a claim of 8 and one of 64. */
  readonly times: readonly Timed[];
}

/** @param tell is called as each case is done: all of them take a minute */
function claims(chosen: readonly string[], tell: (claimed: Claimed) => void): void {
  const empty = open("OFF");
  empty.transaction(() => others(empty))();
  empty.run("PRAGMA wal_checkpoint(TRUNCATE)");
  for (const { name, load, terms, apart } of CASES) {
    if (chosen.length > 0 && !chosen.some((word) => name.includes(word))) continue;
    const db = open("OFF");
    db.transaction(() => load(db))();
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    tell({ name, apart: apart === true, times: [8, 64].map((n) => timeClaim(empty, db, n, { ...TERMS, ...terms })) });
    if (name === "a held kind") {
      const began = performance.now();
      resume(db, HELD, { now: NOW, actor: "bench" });
      held.resumedMs = performance.now() - began;
    }
    db.close();
  }
  empty.close();
}

/** Goal 9, the two cases that it names. */
export function blocked(): readonly Line[] {
  const lines: Line[] = [];
  claims(["one failing key", "one saturated destination"], ({ name, times }) => {
    if (name.includes(",")) return;
    const ratios = times.map(({ ratio }) => ratio);
    const note = times.map(({ us, got, ratio }) => `${got} in ${us.toFixed(0)} µs, ${ratio.toFixed(2)}x`).join("; ");
    lines.push({ goal: 9, what: `claim behind ${ROWS} rows of ${name}`, value: Math.max(...ratios), unit: "x", atMost: 1.5, note });
  });
  return lines;
}

function printClaims(chosen: readonly string[]): void {
  console.log(`claim of 8 and of 64, µs (rows claimed) ratio to nothing blocked; ${ROWS} rows in front, limit 4 a destination`);
  claims(chosen, ({ name, apart, times }) => {
    const told = times.map(({ us, got, ratio }) => `${us.toFixed(0).padStart(8)} (${got}) x${ratio.toFixed(2).padEnd(7)}`);
    console.log(`${name.padEnd(38)} ${told.join(" ")}${apart ? " (apart from the goals)" : ""}`);
  });
  if (held.resumedMs > 0) console.log(`the hold of a kind took ${held.beganMs.toFixed(0)} ms, its end ${held.resumedMs.toFixed(0)} ms`);
}

/** The same moves with and without migration 0002, side by side; the part of `FULL` is what a person waits for. */
function writes(): void {
  console.log("\nmoves, µs a row without and with the caches (enqueue: a commit each; claim and settle: eight a commit)");
  for (const synchronous of ["OFF", "FULL"] as const)
    for (const keyed of [false, true]) {
      const schemas = [MIGRATIONS.slice(0, 1), MIGRATIONS].map((schema) => {
        const db = open(synchronous, schema);
        let entered = 0;
        const insert = db.query(
          `INSERT INTO dispatch_outbox (id, kind, deliver_to, ordering_key, payload, next_attempt_at, created_at, updated_at)
           VALUES (lower(hex(randomblob(16))), 'ping', ?, ?, '{"body":"some text of usual length"}', ?, ${NOW}, ${NOW})`,
        );
        const add = (): void => {
          entered += 1;
          insert.run(`seat${entered % 50}`, keyed ? `key${entered % 2_000}` : null, NOW + entered * 0.01);
        };
        db.transaction(() => {
          for (let n = 0; n < 10_000; n++) add();
        })();
        return { db, add, settled: 0, times: { enqueue: [] as number[], claim: [] as number[], settle: [] as number[] } };
      });
      const timed = (into: number[], work: () => void): void => {
        const began = performance.now();
        work();
        into.push(((performance.now() - began) * 1_000) / 8);
      };
      for (let turn = 0; turn < (synchronous === "FULL" ? 60 : 150); turn++)
        for (const schema of schemas) {
          const { db, add, times, settled } = schema;
          const rows = `seq > ${settled} AND seq <= ${settled + 8}`;
          timed(times.enqueue, () => {
            for (let n = 0; n < 8; n++) db.transaction(add).immediate();
          });
          timed(times.claim, () => db.transaction(() => claimRows(db, rows)).immediate());
          timed(times.settle, () =>
            db
              .transaction(() =>
                db.run(
                  `UPDATE dispatch_outbox SET status = 'delivered', reason_code = 'dispatch.delivered.transport_ok', lock_token = NULL,
                     updated_at = ${NOW} WHERE ${rows}`,
                ),
              )
              .immediate(),
          );
          schema.settled += 8;
        }
      const [without, with_] = schemas.map(({ times }) => ({ e: median(times.enqueue), c: median(times.claim), s: median(times.settle) }));
      if (without === undefined || with_ === undefined) return;
      const pair = (a: number, b: number): string => `${a.toFixed(0)} ${b.toFixed(0)}`.padEnd(10);
      console.log(
        `${synchronous.padEnd(5)} ${keyed ? "keyed  " : "unkeyed"} enqueue ${pair(without.e, with_.e)} claim ${pair(without.c, with_.c)} settle ${pair(without.s, with_.s)}`,
      );
      for (const { db } of schemas) db.close();
    }
}

if (import.meta.main) {
  printClaims(process.argv.slice(2));
  if (process.argv.length === 2) writes();
}
