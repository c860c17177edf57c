import { Database, SQLiteError } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Dispatch, Transition } from "../../src/core/dispatch.ts";
import { EDGES, REASONS, type Status, STATUSES } from "../../src/core/lifecycle.ts";
import { install } from "../../src/store/migrate.ts";
import { enter, memory, row, scratch, T0 } from "../fixtures/world.ts";

const MODES = ["", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK"] as const;
type Mode = (typeof MODES)[number];
/** When the rows of this world were last moved, and when a lease that still runs ends. */
const MOVED = T0 + 100;
const LEASE_END = MOVED + 15;
const OLD_TOKEN = "e".repeat(32);
const NEW_TOKEN = "f".repeat(32);

interface Step {
  readonly status: Status;
  readonly reason: string;
  readonly attempt: number;
  readonly token: string | null;
}

/** Makes a row and walks it to the given status by legal moves, so that its attempt number is 2. */
function walk(db: Database, to: Status, ackRequired: boolean): number {
  const { seq } = enter(db, { ack_required: ackRequired });
  const claim = (attempt: number, token: string): Step => ({ status: "delivering", reason: "dispatch.delivering.attempt", attempt, token });
  const again = (attempt: number): Step => ({ status: "pending", reason: "dispatch.pending.retry_backoff", attempt, token: null });
  const last: Readonly<Record<Status, Step | null>> = {
    delivering: null,
    pending: again(2),
    delivered: { status: "delivered", reason: "dispatch.delivered.transport_ok", attempt: 2, token: null },
    acked: { status: "acked", reason: "dispatch.acked.consumer", attempt: 2, token: null },
    dead_letter: { status: "dead_letter", reason: "dispatch.dead_letter.max_attempts", attempt: 2, token: null },
    expired: { status: "expired", reason: "dispatch.expired.cancelled", attempt: 2, token: null },
  };
  for (const step of [claim(1, "1".repeat(32)), again(1), claim(2, OLD_TOKEN), ...(to === "expired" ? [again(2)] : []), last[to]])
    if (step !== null)
      db.query(
        `UPDATE dispatch_outbox SET status = ?, reason_code = ?, attempt = ?, lock_token = ?, next_attempt_at = ?, updated_at = ? WHERE seq = ?`,
      ).run(step.status, step.reason, step.attempt, step.token, step.status === "delivering" ? LEASE_END : MOVED, MOVED, seq);
  return seq;
}

interface Attempted {
  readonly to: Status;
  readonly reason: string;
  readonly attempt: number;
  readonly token: string | null;
  readonly now: number;
}

describe("the lifecycle in the database", () => {
  const dir = scratch();
  let db: Database;
  let second: Database;
  /** By `status` and `ack_required`. A row with ack_required is never `delivered`. */
  const rows = new Map<string, Dispatch>();

  beforeAll(() => {
    db = new Database(dir.file("a.db"), { strict: true });
    db.run("PRAGMA journal_mode = WAL");
    install(db);
    for (const status of STATUSES)
      for (const ack of [false, true])
        if (!(status === "delivered" && ack)) rows.set(`${status} ${ack ? 1 : 0}`, row(db, walk(db, status, ack)));
    second = new Database(dir.file("a.db"), { strict: true });
  });
  afterAll(() => {
    second.close();
    db.close();
    dir[Symbol.dispose]();
  });

  const snapshot = (seq: number): string =>
    JSON.stringify([
      second.query("SELECT * FROM dispatch_outbox WHERE seq = ?").get(seq),
      second.query("SELECT count(*) AS n, max(id) AS last FROM status_transitions").get(),
    ]);

  const summary = "moved by a test";

  /**
   * Tries the move from the second connection, calls `seen` if it was accepted, and takes that back. One that was refused has left
   * nothing to be taken back: the next one meets what it left.
   */
  function tryMove(mode: Mode, old: Dispatch, move: Attempted, seen: () => void): boolean {
    if (!second.inTransaction) second.run("BEGIN IMMEDIATE");
    try {
      const { changes } = second
        .query(
          `UPDATE ${mode} dispatch_outbox SET status = $to, reason_code = $reason, reason_summary = $summary, attempt = $attempt,
             lock_token = $token, updated_at = $now, source = 'scheduler', actor = 'tester', metadata = '{"attempt":2}' WHERE seq = $seq`,
        )
        .run({ ...move, summary, seq: old.seq });
      if (changes === 0) return false;
      seen();
    } catch (error) {
      if (error instanceof SQLiteError) return false;
      throw error;
    }
    second.run("ROLLBACK");
    return true;
  }

  /** The attempt number that the move demands, in the words of DESIGN section 3. */
  function attemptAfter(to: Status, reason: string, old: number): number {
    if (to === "delivering") return old + 1;
    if (reason === "dispatch.pending.released" || reason === "dispatch.pending.config_fault") return old - 1;
    return reason === "dispatch.pending.operator_retry" ? 0 : old;
  }

  function lawful(old: Dispatch, move: Attempted): boolean {
    const listed = EDGES.some((edge) => edge.from === old.status && edge.to === move.to && edge.reason === move.reason);
    const leaseOver = old.next_attempt_at <= move.now;
    return (
      listed &&
      move.attempt === attemptAfter(move.to, move.reason, old.attempt) &&
      (move.to === "delivering") === (move.token !== null) &&
      (move.token === null || move.token !== old.lock_token) &&
      !(old.status === "delivering" && (move.to === "delivering" || move.to === "expired") && !leaseOver) &&
      !(move.reason === "dispatch.delivered.transport_ok" && old.ack_required !== (move.to === "pending" ? 1 : 0))
    );
  }

  test.each(MODES)(
    "UPDATE %s: every status to every status for every reason with every arithmetic is accepted if and only if it is lawful",
    (mode) => {
      const accepted = new Set<string>();
      const wrong: unknown[] = [];
      for (const old of rows.values()) {
        const before = snapshot(old.seq);
        const lastId = second.query<{ id: number }, []>("SELECT max(id) AS id FROM status_transitions").get()?.id ?? 0;
        for (const move of everyMove()) {
          const done = tryMove(mode, old, move, () => {
            accepted.add(`${old.status} > ${move.to} ${move.reason}`);
            expect(second.query<Transition, [number]>("SELECT * FROM status_transitions WHERE id > ?").all(lastId)).toEqual([
              {
                id: lastId + 1,
                entity_type: "dispatch",
                entity_id: old.id,
                previous_status: old.status,
                status: move.to,
                reason_code: move.reason,
                reason_summary: summary,
                evidence_refs: "[]",
                source: "scheduler",
                actor: "tester",
                created_at: move.now,
                metadata: '{"attempt":2}',
              },
            ]);
          });
          if (done !== lawful(old, move)) wrong.push({ from: old.status, ack_required: old.ack_required, ...move, done });
        }
        expect(snapshot(old.seq)).toBe(before);
        if (second.inTransaction) second.run("ROLLBACK");
        expect(snapshot(old.seq)).toBe(before);
      }
      expect(wrong).toEqual([]);
      const listed = EDGES.filter((edge) => edge.from !== null).map((edge) => `${edge.from} > ${edge.to} ${edge.reason}`);
      expect([...accepted].toSorted()).toEqual(listed.toSorted());
    },
    20_000,
  );
});

function* everyMove(): Generator<Attempted> {
  for (const to of STATUSES)
    for (const reason of REASONS)
      for (const attempt of [0, 1, 2, 3])
        for (const token of to === "delivering" ? [NEW_TOKEN, OLD_TOKEN] : [null, NEW_TOKEN])
          for (const now of [MOVED + 1, LEASE_END]) yield { to, reason, attempt, token, now };
}

test("dispatch_edges holds exactly EDGES", () => {
  const seeded = memory().query("SELECT from_status, to_status, reason_code FROM dispatch_edges").values();
  expect(seeded.map(String).toSorted()).toEqual(EDGES.map((edge) => String([edge.from ?? "", edge.to, edge.reason])).toSorted());
});

/** Inserts a lawful new row with some columns otherwise. */
function insert(db: Database, otherwise: Readonly<Record<string, string | number | null>>, mode: Mode = ""): number {
  const columns: Record<string, string | number | null> = {
    id: "9".repeat(32),
    kind: "ping",
    deliver_to: "seat-9",
    payload: "{}",
    next_attempt_at: T0,
    created_at: T0,
    updated_at: T0,
    ...otherwise,
  };
  const names = Object.keys(columns);
  return db
    .query(`INSERT ${mode} INTO dispatch_outbox (${names.join(", ")}) VALUES (${names.map((name) => `$${name}`).join(", ")})`)
    .run(columns).changes;
}

function everything(db: Database): unknown {
  return ["dispatch_outbox", "status_transitions"].map((table) => db.query(`SELECT * FROM ${table}`).all());
}

describe.each(MODES)("INSERT %s", (mode) => {
  test("a lawful row enters with its history row", () => {
    const db = memory();
    expect(insert(db, {}, mode)).toBe(1);
    expect(db.query("SELECT entity_id, previous_status, status, reason_code, created_at FROM status_transitions").all()).toEqual([
      { entity_id: "9".repeat(32), previous_status: null, status: "pending", reason_code: "dispatch.pending.enqueued", created_at: T0 },
    ]);
  });

  test.each([
    ["seq", { seq: 1 }, "dispatch: this seq is taken"],
    ["id", { id: "d" }, "dispatch: this id is taken"],
    ["dedup_key", { dedup_key: "daily" }, "dispatch: this dedup_key is taken"],
  ] as const)("a taken %s is refused and the first row stands", (_, otherwise, message) => {
    const db = memory();
    const first = enter(db, { dedup_key: "daily" });
    const before = everything(db);
    const values = "id" in otherwise ? { id: first.id } : otherwise;
    expect(() => insert(db, values, mode)).toThrow(message);
    expect(everything(db)).toEqual(before);
  });

  test("a taken seq is refused under its other names too", () => {
    const db = memory();
    enter(db);
    for (const name of ["rowid", "oid", "_rowid_"]) expect(() => insert(db, { [name]: 1 }, mode)).toThrow("this seq is taken");
  });

  // Hundreds of births on one database, each taken back by the next.
  const db = memory();
  test.each([
    ...STATUSES.flatMap((status) => REASONS.map((reason_code) => ({ status, reason_code, attempt: 0 }))),
    { status: "pending", reason_code: "dispatch.pending.enqueued", attempt: 1 },
  ])("a row enters as $status, $reason_code, attempt $attempt only if that is its birth", (birth) => {
    if (db.inTransaction) db.run("ROLLBACK");
    db.run("BEGIN");
    const lawful = birth.status === "pending" && birth.reason_code === "dispatch.pending.enqueued" && birth.attempt === 0;
    const enters = (): number => insert(db, { ...birth, lock_token: birth.status === "delivering" ? NEW_TOKEN : null }, mode);
    if (lawful) expect(enters()).toBe(1);
    else expect(enters).toThrow(/^dispatch: a row enters/);
    expect(everything(db)).toEqual(lawful ? [[expect.anything()], [expect.anything()]] : [[], []]);
  });
});

describe.each(MODES)("UPDATE %s", (mode) => {
  const others = Object.entries({
    seq: 7,
    rowid: 7,
    oid: 7,
    _rowid_: 7,
    id: "7".repeat(32),
    kind: "x",
    deliver_to: "x",
    payload: "[]",
    dedup_key: "x",
    ordering_key: "x",
    ack_token: "x",
    created_at: 7,
  });
  const emptied = ["dedup_key", "ordering_key", "ack_token"].map((column) => [column, null] as const);
  test.each([...others, ...emptied])("does not rewrite %s as %p", (column, value) => {
    const db = memory();
    insert(db, { dedup_key: "a", ordering_key: "b", ack_required: 1, ack_token: "c" });
    const before = everything(db);
    expect(() => db.query(`UPDATE ${mode} dispatch_outbox SET ${column} = ?`).run(value)).toThrow(/written once$/);
    expect(everything(db)).toEqual(before);
  });

  test("does not take another row's number", () => {
    const db = memory();
    enter(db);
    enter(db);
    const before = everything(db);
    for (const name of ["seq", "rowid"]) expect(() => db.run(`UPDATE ${mode} dispatch_outbox SET ${name} = 2 WHERE seq = 1`)).toThrow();
    expect(everything(db)).toEqual(before);
  });

  test.each([
    ["status", "UPDATE $ dispatch_outbox SET status = NULL"],
    ["attempt", "UPDATE $ dispatch_outbox SET attempt = NULL"],
    ["reason_code", "UPDATE $ dispatch_outbox SET reason_code = NULL"],
  ])("does not move a row by %s NULL, which OR REPLACE turns into the default", (_, sql) => {
    const db = memory();
    const seq = walk(db, "pending", false);
    const before = everything(db);
    try {
      db.run(sql.replace("$", mode));
    } catch (error) {
      expect(error).toBeInstanceOf(SQLiteError);
    }
    expect(everything(db)).toEqual(before);
    expect(row(db, seq).attempt).toBe(2);
  });

  test("writes no history row for what is no move", () => {
    const db = memory();
    walk(db, "delivering", false);
    const before = db.query("SELECT * FROM status_transitions").all();
    db.run(
      `UPDATE ${mode} dispatch_outbox SET next_attempt_at = next_attempt_at + 5, max_attempts = 9, expires_at = 5e9, last_error = 'x'`,
    );
    expect(db.query("SELECT * FROM status_transitions").all()).toEqual(before);
  });
});

test("a lawful UPDATE of several rows writes one history row each", () => {
  const db = memory();
  for (let n = 0; n < 3; n++) enter(db);
  db.run("UPDATE dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer', updated_at = updated_at + 1");
  const moved = db.query("SELECT entity_id FROM status_transitions WHERE status = 'acked' ORDER BY id").values();
  expect(moved).toEqual(db.query("SELECT id FROM dispatch_outbox ORDER BY seq").values());
});

test("one unlawful row of several takes the whole statement back", () => {
  const db = memory();
  enter(db);
  walk(db, "dead_letter", false);
  const before = everything(db);
  for (const mode of MODES)
    expect(() =>
      db.run(`UPDATE ${mode} dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer', updated_at = updated_at + 1`),
    ).toThrow("this move is not in the lifecycle");
  expect(everything(db)).toEqual(before);
});

test.each(MODES)("INSERT %s ON CONFLICT DO UPDATE is refused like any other taken id", (mode) => {
  const db = memory();
  const { id } = enter(db);
  expect(() =>
    db.run(
      `INSERT ${mode} INTO dispatch_outbox (id, kind, deliver_to, payload, next_attempt_at, created_at, updated_at) VALUES ('${id}', 'k', 'd', '{}', 0, 0, 0)
       ON CONFLICT (id) DO UPDATE SET status = 'acked', reason_code = 'dispatch.acked.consumer'`,
    ),
  ).toThrow("this id is taken");
});

describe("a history row that cannot be written", () => {
  /** Ways to break the history. What a stranger's RAISE(FAIL) keeps is DDL of his own and not covered. */
  const BROKEN = {
    "a trigger that ignores it": "CREATE TRIGGER broken BEFORE INSERT ON status_transitions BEGIN SELECT RAISE(IGNORE); END",
    "a trigger that aborts it": "CREATE TRIGGER broken BEFORE INSERT ON status_transitions BEGIN SELECT RAISE(ABORT, 'broken'); END",
    "no table": "DROP TABLE status_transitions",
    "a table without a column": "ALTER TABLE status_transitions DROP COLUMN reason_summary",
    "a constraint that it breaks": `
      DROP TABLE status_transitions;
      CREATE TABLE status_transitions (id INTEGER PRIMARY KEY, entity_type, entity_id, previous_status, status, reason_code, reason_summary,
        source, actor, created_at, metadata, CHECK (reason_code = 'never'))`,
  } as const;
  const cases = Object.entries(BROKEN).flatMap(([what, sql]) =>
    // OR FAIL keeps by its nature what the statement had done. That the history accepts all that the row does is shown below.
    MODES.filter((mode) => mode !== "OR FAIL" || !what.startsWith("a constraint")).map((mode) => [what, mode, sql] as const),
  );

  test.each(cases)("%s: a move is taken back (%s)", (_, mode, sql) => {
    const db = memory();
    const { seq } = enter(db);
    const before = row(db, seq);
    db.run(sql);
    expect(() => db.run(`UPDATE ${mode} dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer'`)).toThrow();
    expect(row(db, seq)).toEqual(before);
  });

  test.each(cases)("%s: a birth is taken back (%s)", (_, mode, sql) => {
    const db = memory();
    db.run(sql);
    expect(() => insert(db, {}, mode)).toThrow();
    expect(db.query("SELECT * FROM dispatch_outbox").all()).toEqual([]);
  });

  test("the history refuses nothing that the row accepts, so that OR FAIL never leaves a move without it", () => {
    const odd = ["", "\0", "x".repeat(100_000), "\uFEFF", "1", "{}"];
    const changes = ["reason_summary", "source", "actor"].flatMap((column) => [...odd, null, 1].map((value) => [column, value] as const));
    const more = [...odd, "[]", "null", null].map((value) => ["metadata", value] as const);
    const times = [0, -1e15, 1e15, 1e16, Infinity, -Infinity, null].map((value) => ["updated_at", value] as const);
    for (const [column, value] of [...changes, ...more, ...times]) {
      const db = memory();
      const { seq } = enter(db);
      const before = row(db, seq);
      let moved = 0;
      try {
        moved = db
          .query(`UPDATE OR FAIL dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer', ${column} = ?`)
          .run(value).changes;
      } catch {
        expect(row(db, seq)).toEqual(before);
      }
      expect(db.query("SELECT count(*) AS n FROM status_transitions").get()).toEqual({ n: 1 + moved });
    }
  });
});

describe("named constraints", () => {
  const BAD: Readonly<Record<string, Readonly<Record<string, string | number | null>>>> = {
    ready_is_0_or_1: { ready: 2 }, // SQLite puts an added column before the constraints
    seq_is_positive: { seq: -1 },
    id_is_32_hex_digits: { id: "D".repeat(32) },
    kind_is_not_empty: { kind: "" },
    deliver_to_is_not_empty: { deliver_to: "" },
    dedup_key_is_not_empty: { dedup_key: "" },
    ordering_key_is_not_empty: { ordering_key: "" },
    payload_is_json: { payload: "{" },
    metadata_is_json: { metadata: "" },
    status_is_known: { status: "done" },
    attempt_is_not_negative: { attempt: -1 },
    max_attempts_is_positive: { max_attempts: 0 },
    unresolved_is_not_negative: { unresolved: -1 },
    ack_required_is_0_or_1: { ack_required: 2 },
    ack_token_if_and_only_if_ack_required: { ack_required: 1 },
    lock_token_if_and_only_if_delivering: { lock_token: NEW_TOKEN },
    holder_only_while_delivering: { holder: "desk 1 1" },
    pending_is_due_before_it_expires: { expires_at: T0 - 1 },
    next_attempt_at_is_finite: { next_attempt_at: -Infinity },
    created_at_is_finite: { created_at: Infinity },
    updated_at_is_finite: { updated_at: -1e16 },
    expires_at_is_finite: { expires_at: Infinity },
  };

  test.each(Object.entries(BAD))("%s", (name, otherwise) => {
    const db = memory();
    expect(() => insert(db, otherwise)).toThrow(`CHECK constraint failed: ${name}`);
    expect(everything(db)).toEqual([[], []]);
  });

  test.each([
    { id: "9".repeat(31) },
    { id: `${"9".repeat(32)}\0x` },
    { ack_token: "x" },
    { kind: null },
    { payload: null },
    { attempt: 0.5 },
    { created_at: "soon" },
    { next_attempt_at: null },
  ])("the table refuses %p too", (otherwise) => {
    expect(() => insert(memory(), otherwise)).toThrow();
  });

  test("each CHECK of dispatch_outbox has a value here that breaks it", () => {
    const sql = memory().query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'dispatch_outbox'").get()?.sql ?? "";
    expect(Object.keys(BAD)).toEqual([...sql.matchAll(/CONSTRAINT (\w+) CHECK/g)].map((match) => match[1] ?? ""));
    expect(sql.match(/CHECK/g)?.length).toBe(Object.keys(BAD).length);
  });

  test.each([
    [
      "evidence_refs_is_json",
      "INSERT INTO status_transitions (entity_type, entity_id, status, reason_code, reason_summary, evidence_refs, source, actor, created_at) VALUES ('', '', '', '', '', '', '', '', 0)",
    ],
    [
      "metadata_is_json",
      "INSERT INTO status_transitions (entity_type, entity_id, status, reason_code, reason_summary, metadata, source, actor, created_at) VALUES ('', '', '', '', '', '', '', '', 0)",
    ],
    [
      "created_at_is_finite",
      "INSERT INTO status_transitions (entity_type, entity_id, status, reason_code, reason_summary, source, actor, created_at) VALUES ('', '', '', '', '', '', '', 9e999)",
    ],
    ["details_is_json", "INSERT INTO admin_events (created_at, action, details, actor) VALUES (0, '', '', '')"],
    ["created_at_is_finite", "INSERT INTO admin_events (created_at, action, actor) VALUES (9e999, '', '')"],
  ])("%s of the history tables", (name, sql) => {
    expect(() => memory().run(sql)).toThrow(`CHECK constraint failed: ${name}`);
  });
});
