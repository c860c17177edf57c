/** Databases of every schema there was, with a message in every stage of its life, brought forward and delivered. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { moveAfter, REASONS, STATUSES } from "../../src/core/lifecycle.ts";
import { breaches } from "../../src/store/invariants.ts";
import { bringForward, install, MIGRATIONS, parts } from "../../src/store/migrate.ts";
import { ownership } from "../../src/store/ownership.ts";
import { openDatabase } from "../../src/store/open.ts";
import { bringUp } from "../../src/store/prepare.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { settle } from "../../src/store/transitions.ts";
import { populate, seqOf, STAGES, writeDatabase } from "../fixtures/store/stages.ts";
import { terms } from "../fixtures/store/terms.ts";
import { POLICY, row, scratch, take, T0 } from "../fixtures/world.ts";

const VERSIONS = MIGRATIONS.map((_, index) => index + 1);
const OLDER = VERSIONS.slice(0, -1);

type Row = Readonly<Record<string, unknown>>;
const all = (db: Database, sql: string): Row[] => db.query<Row, []>(sql).all();
/** Every value of every row of the tables that schema 1 has, in its own columns. */
function contents(db: Database, columns: ReadonlyMap<string, readonly string[]>): unknown {
  return [...columns].map(([table, names]) => all(db, `SELECT ${names.join(", ")} FROM ${table} ORDER BY 1`));
}
function columnsOf(db: Database): ReadonlyMap<string, readonly string[]> {
  return new Map(
    ["dispatch_outbox", "status_transitions", "admin_events", "dispatch_edges"].map((table) => [
      table,
      all(db, `SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => String(name)),
    ]),
  );
}

function inMemory(version: number, steps: readonly string[] = MIGRATIONS.slice(0, version)): Database {
  const db = new Database(":memory:", { strict: true });
  install(db, steps);
  populate(db, T0);
  return db;
}

describe.each(OLDER)("a database of schema %d", (version) => {
  test("is brought forward with every row and its history as they were, and with the parts and caches of a new one", async () => {
    using dir = scratch();
    const path = dir.file("outbox.db");
    writeDatabase(path, T0, version);
    const before = new Database(path, { readwrite: true });
    const columns = columnsOf(before);
    const rows = contents(before, columns);
    before.close();
    const db = await openDatabase(terms(path));
    expect(ownership(db)).toEqual({ whose: "ours", version: SCHEMA_VERSION });
    expect(contents(db, columns)).toEqual(rows);
    expect(parts(db)).toEqual(parts(inMemory(SCHEMA_VERSION)));
    expect(breaches(db, T0)).toEqual([]);
    expect(all(db, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    db.close();
    expect(readdirSync(dir.path).toSorted()).toEqual(["outbox.db", `outbox.db.schema-${version}.backup`]);
    // And what `migrate` says of it afterwards: nothing is missing.
    await bringUp(terms(path));
  });

  test("has the counters that it would have had from the beginning", () => {
    // How late claims were is known only since there are counters of it.
    const counters = (db: Database): unknown => [
      all(db, "SELECT pending, delivering, delivered, acked, dead_letter, expired, open_circuits FROM dispatch_figures"),
      all(db, "SELECT * FROM dispatch_counters ORDER BY kind, name, reason"),
    ];
    const db = inMemory(version);
    bringForward(db);
    expect(counters(db)).toEqual(counters(inMemory(SCHEMA_VERSION)));
  });

  test("keeps the copy of before, whole and of its schema", async () => {
    using dir = scratch();
    const path = dir.file("outbox.db");
    writeDatabase(path, T0, version);
    copyFileSync(path, dir.file("kept.db"));
    (await openDatabase(terms(path))).close();
    const [copy, kept] = [`${path}.schema-${version}.backup`, dir.file("kept.db")].map((name) => new Database(name, { readwrite: true }));
    if (copy === undefined || kept === undefined) throw new Error("there are two");
    expect(ownership(copy)).toEqual({ whose: "ours", version });
    expect(contents(copy, columnsOf(kept))).toEqual(contents(kept, columnsOf(kept)));
  });

  test("goes on where it stopped: what was claimed is settled by its token, what was left is taken, the order of keys stays", () => {
    const db = inMemory(version);
    bringForward(db);
    const claim = row(db, seqOf("claimed in its key"));
    const taken: number[] = [];
    for (let got = take(db, T0); got !== null; got = take(db, T0)) taken.push(got.seq);
    // What ends without a command, then what may be claimed, the row behind the claim and the one behind the first of its key not.
    expect(taken.map((seq) => STAGES[seq - 1]?.stage ?? "").toSorted()).toEqual(
      [
        "due",
        "failed, due again",
        "first of its key",
        "given back",
        version === 1 ? "for who is held" : "",
        "known by a dedup key",
        "left by its runner",
        "on its last attempt",
        "past its expiry",
        "put off by a fault",
        "retried",
      ]
        .filter(Boolean)
        .toSorted(),
    );
    const report = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
    const held = { seq: claim.seq, attempt: claim.attempt, lockToken: claim.lock_token ?? "" };
    expect(settle(db, held, moveAfter({ kind: "ok", report }, claim, POLICY, T0 + 1, 0), T0 + 1, "h")).toBe("applied");
    expect(take(db, T0 + 1)?.seq).toBe(seqOf("behind a claim"));
    expect(row(db, seqOf("on its last attempt"))).toMatchObject({ status: "dead_letter" });
    expect(row(db, seqOf("past its expiry"))).toMatchObject({ status: "expired" });
    expect(breaches(db, T0 + 1)).toEqual([]);
  });
});

test("a step that fails leaves the file as it was, with its copy beside it", async () => {
  using dir = scratch();
  const path = dir.file("outbox.db");
  writeDatabase(path, T0, SCHEMA_VERSION);
  const before = readFileSync(path);
  for (const step of ["CREATE TABLE main.dispatch_next (x);\nSELECT nonsense;", "INSERT INTO main.dispatch_outbox (id) VALUES (1);"]) {
    expect(await openDatabase(terms(path), [...MIGRATIONS, step]).then(() => "opened", String)).toContain("Error");
    const db = new Database(path, { readwrite: true });
    expect(ownership(db)).toEqual({ whose: "ours", version: SCHEMA_VERSION });
    expect(all(db, "SELECT name FROM sqlite_schema WHERE name = 'dispatch_next'")).toEqual([]);
    db.close();
  }
  expect(readFileSync(path).equals(before)).toBeTrue();
});

test("the stages show every status and every reason that there is", () => {
  const db = inMemory(SCHEMA_VERSION);
  expect(
    all(db, "SELECT DISTINCT status FROM dispatch_outbox")
      .map(({ status }) => String(status))
      .toSorted(),
  ).toEqual(STATUSES.toSorted());
  const reasons = all(db, "SELECT DISTINCT reason_code FROM status_transitions").map(({ reason_code }) => String(reason_code));
  expect(reasons.toSorted()).toEqual(REASONS.toSorted());
});
