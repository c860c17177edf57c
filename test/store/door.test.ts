/** The SQL door: what it enters is what the library enters, and what the library refuses it refuses, in every conflict mode. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { checkRequest, DEFAULT_LIMITS, type EnqueueRequest } from "../../src/core/request.ts";
import { MAX_TIME } from "../../src/core/time.ts";
import { enqueue } from "../../src/store/enqueue.ts";
import { breaches } from "../../src/store/invariants.ts";
import { BODIES, REFUSED, TEXTS } from "../fixtures/store/door_cases.ts";
import { DOOR_COLUMNS, insert, MODES, refusal } from "../fixtures/store/door.ts";
import { count, enter, memory, row } from "../fixtures/world.ts";

const last = (db: Database): Dispatch => row(db, count(db, "dispatch_outbox"));
const envelopeOf = (dispatch: Dispatch) => JSON.parse(dispatch.payload) as Record<string, unknown>;

describe("a row that enters by the SQL door", () => {
  test("has ids, envelope, defaults and history of its own", () => {
    const db = memory();
    insert(db, { body: '{"n": 1}', ack_required: 1 });
    const entered = row(db, 1);
    expect(entered).toMatchObject({ status: "pending", attempt: 0, max_attempts: 8, next_attempt_at: entered.created_at, ack_required: 1 });
    expect(entered.id).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
    expect(Number.parseInt(entered.id.slice(0, 12), 16)).toBe(Math.round(entered.created_at * 1_000));
    expect(entered.ack_token).toMatch(/^[0-9a-f]{32}$/);
    expect(envelopeOf(entered)["id"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(entered.payload).toEndWith(',"body":{"n": 1}}');
    expect(db.query("SELECT status, reason_code, actor FROM status_transitions").all()).toEqual([
      { status: "pending", reason_code: "dispatch.pending.enqueued", actor: "enqueue_dispatch" },
    ]);
  });

  test("is the row that the library enters for the same request, envelope and all", () => {
    const text = fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((each) => !each.includes("\0"));
    const time = fc.oneof(fc.double({ min: 0, max: MAX_TIME, noNaN: true }), fc.integer({ min: 0, max: MAX_TIME }));
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
    const requests = fc.record({
      kind: text,
      deliver_to: text,
      dedup_key: optional(text),
      ack_required: optional(fc.boolean()),
      max_attempts: optional(fc.integer({ min: 1, max: 1_000_000 })),
      expires_at: optional(time),
      not_before: optional(time),
      ordering_key: optional(text),
      session_id: optional(text),
      schedule_run_id: optional(text),
      emitter_role: optional(text),
      tenant_id: optional(text),
      user_id: optional(text),
      user_roles: optional(
        fc.oneof(
          text,
          fc.array(text, { minLength: 10, maxLength: 40 }).map((roles) => roles.join(",")),
        ),
      ),
      correlation_id: optional(text),
    });
    const blanks = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });
    // Taken back after each: to make new ones would take ten times as long.
    const [door, library] = [memory(), memory()];
    const bodies = fc.tuple(blanks, fc.option(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue())), blanks);
    fc.assert(
      fc.property(requests, optional(bodies), (request, parts) => {
        fc.pre(request.expires_at === null || request.not_before === null || request.expires_at > request.not_before);
        const [before, value, behind] = parts ?? ["", null, ""];
        const body = parts === null ? undefined : before + JSON.stringify(value) + behind;
        for (const db of [door, library]) db.run("BEGIN");
        try {
          insert(door, {
            ...request,
            body: body ?? null,
            ack_required: request.ack_required === null ? null : Number(request.ack_required),
          });
          const seen = row(door, 1);
          // The library with the clock and the dice of the door: then not a byte may differ.
          const drawn = { id: () => seen.id, signalId: () => String(envelopeOf(seen)["id"]), token: () => String(seen.ack_token) };
          enqueue(library, checkRequest(request, DEFAULT_LIMITS, body), seen.created_at, { ...drawn, random: () => 0.5 });
          expect(seen).toEqual(row(library, 1));
          expect(breaches(door, seen.created_at)).toEqual([]);
        } finally {
          for (const db of [door, library]) db.run("ROLLBACK");
        }
      }),
      { numRuns: 150 },
    );
  });

  test("has one id in column and envelope, however many enter at once", () => {
    const db = memory();
    db.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
       INSERT INTO dispatch_enqueue (kind, deliver_to, ack_required) SELECT 'k' || i, 'd', i % 2 FROM n`,
    );
    for (let at = 0; at < 1_000; at++) insert(db);
    const seen = db
      .query<{ id: string; token: string | null; ms: number; payload: string }, []>(
        "SELECT id, ack_token AS token, created_at AS ms, payload FROM dispatch_outbox",
      )
      .all();
    expect(seen.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual(
      seen.map(({ id, token, ms }) => expect.objectContaining({ dispatch_id: id, ack_token: token, created_at: ms })) as unknown[],
    );
    expect(new Set(seen.map(({ id }) => id)).size).toBe(3_000);
    expect(breaches(db, Date.now() / 1_000 + 1)).toEqual([]);
  });

  test("takes the caller's own id", () => {
    const db = memory();
    insert(db, { id: "0a".repeat(16) });
    expect(envelopeOf(row(db, 1))["dispatch_id"]).toBe("0a".repeat(16));
    for (const mode of MODES) expect(refusal(db, { id: "0a".repeat(16), kind: "other" }, mode)).toBe("this id is taken");
    expect([count(db, "dispatch_outbox"), row(db, 1).kind]).toEqual([1, "ping"]);
  });

  test("is entered once for a dedup key, without an error, also from one statement, in every conflict mode", () => {
    const db = memory();
    const { id } = enter(db, { dedup_key: "k" });
    for (const mode of MODES) insert(db, { dedup_key: "k", kind: "other", id: "0a".repeat(16) }, mode);
    db.run("INSERT INTO dispatch_enqueue (kind, deliver_to, dedup_key) VALUES ('a', 'd', 'x'), ('b', 'd', 'x')");
    expect([1, 2].map((seq) => row(db, seq)).map(({ kind }) => kind)).toEqual(["ping", "a"]);
    expect([count(db, "dispatch_outbox"), row(db, 1).id]).toEqual([2, id]);
    expect(enter(db, { dedup_key: "x", kind: "a", deliver_to: "d" })).toMatchObject({ outcome: "duplicate", differs: [] });
  });

  test("commits and rolls back with its transaction", () => {
    const db = memory();
    db.run("BEGIN");
    insert(db);
    db.run("SAVEPOINT s");
    insert(db);
    db.run("ROLLBACK TO s");
    db.run("COMMIT");
    expect(count(db, "dispatch_outbox")).toBe(1);
    db.run("BEGIN");
    insert(db);
    db.run("ROLLBACK");
    expect([count(db, "dispatch_outbox"), count(db, "status_transitions")]).toEqual([1, 1]);
  });

  test("needs no trust in the schema, and is not led astray by a TEMP table of the same name", () => {
    const db = memory();
    db.run("PRAGMA trusted_schema = OFF");
    db.run("CREATE TEMP TABLE dispatch_outbox (id TEXT); CREATE TEMP TABLE dispatch_entry (id TEXT)");
    insert(db, { body: `{"a":"é${"[".repeat(1_100)}\\ud83d\\ude00"}` });
    expect(db.query("SELECT count(*) AS n FROM main.dispatch_outbox").get()).toEqual({ n: 1 });
  });

  test.each(MODES.map((mode) => [mode]))(
    "enters, or is refused, in a trigger of the program's own, whose statement is INSERT %s",
    (mode) => {
      const db = memory();
      db.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, payer TEXT)");
      db.run(
        `CREATE TRIGGER pays AFTER INSERT ON orders BEGIN
         INSERT INTO dispatch_enqueue (kind, deliver_to, body, dedup_key) VALUES ('paid', NEW.payer, json_object('order', NEW.id), 'paid:' || NEW.id);
       END`,
      );
      db.run("BEGIN");
      db.run(`INSERT ${mode} INTO orders VALUES (1, 'a'), (2, 'b')`);
      expect(() => db.run(`INSERT ${mode} INTO orders VALUES (3, 'c'), (4, '')`)).toThrow("dispatch: deliver_to is empty");
      db.run("COMMIT");
      db.run("INSERT OR REPLACE INTO orders VALUES (1, 'z')"); // its key is known
      expect(["orders", "dispatch_outbox", "status_transitions"].map((table) => count(db, table))).toEqual([2, 2, 2]);
      expect([1, 2].map((seq) => row(db, seq)).map(({ deliver_to, dedup_key }) => [deliver_to, dedup_key])).toEqual([
        ["a", "paid:1"],
        ["b", "paid:2"],
      ]);
    },
  );

  test.each([
    ["recursive_triggers = ON"],
    ["reverse_unordered_selects = ON"],
    ["case_sensitive_like = ON"],
    ["ignore_check_constraints = ON"],
    ["foreign_keys = ON"],
    ["legacy_alter_table = ON"],
    ["count_changes = ON"],
  ])("is the same on a handle with %s", (pragma) => {
    const db = memory();
    db.run(`PRAGMA ${pragma}`);
    const body = '{"ü":"\\ud83d\\ude00"}';
    insert(db, { id: "0a".repeat(16), body, user_roles: `${"é".repeat(500)},${"x".repeat(20)}`, dedup_key: "k" }, "OR REPLACE");
    insert(db, { kind: "other", dedup_key: "k" }, "OR REPLACE");
    expect(refusal(db, { id: "0a".repeat(16) }, "OR IGNORE")).toBe("this id is taken");
    expect(refusal(db, { body: "{a}" }, "OR IGNORE")).toBe("body is not JSON");
    expect([count(db, "dispatch_outbox"), row(db, 1).kind, row(db, 1).user_roles]).toEqual([1, "ping", "é".repeat(500)]);
    expect(row(db, 1).payload).toEndWith(`,"body":${body}}`);
    expect(breaches(db, row(db, 1).created_at)).toEqual([]);
  });

  test("with texts that another JSON function made has texts in its envelope, not JSON", () => {
    const db = memory();
    db.run(
      "INSERT INTO dispatch_enqueue (kind, deliver_to, emitter_role, body) VALUES (json('[1]'), json('{}'), json('2'), json_object('a', 1))",
    );
    expect(envelopeOf(row(db, 1))).toMatchObject({ kind: "[1]", deliver_to: "{}", emitter_role: "2", body: { a: 1 } });
  });

  test("is seen through the view in the words of its request", () => {
    const db = memory();
    const body = '{"z":1.0, "a":"\\",\\"body\\":","z":2}';
    const given = { kind: 'a","body":{}', deliver_to: "d", body, dedup_key: "k", emitter_role: "r", tenant_id: "t", expires_at: MAX_TIME };
    insert(db, given);
    db.run(
      "INSERT INTO dispatch_outbox (id, kind, deliver_to, payload, next_attempt_at, created_at, updated_at) VALUES (?, 'k', 'd', '[]', 1, 1, 1)",
      ["0b".repeat(16)],
    );
    const rows = db.query<Record<string, unknown>, []>("SELECT * FROM dispatch_enqueue").all();
    expect(Object.keys(rows[0] ?? {})).toEqual([...DOOR_COLUMNS]);
    expect(rows).toMatchObject([
      { ...given, not_before: null, ack_required: 0 },
      { id: "0b".repeat(16), body: null, emitter_role: null },
    ]);
    expect(db.query("SELECT id FROM dispatch_enqueue WHERE dedup_key = 'k'").get()).toEqual({ id: row(db, 1).id });
  });
});

describe("the SQL door refuses, in every conflict mode,", () => {
  test.each(MODES.map((mode) => [mode]))("INSERT %s: what the library refuses, by name", (mode) => {
    const db = memory();
    expect(REFUSED.map(([given]) => refusal(db, given, mode))).toEqual(REFUSED.map(([, wanted]) => wanted));
    expect([count(db, "dispatch_outbox"), count(db, "status_transitions"), count(db, "dispatch_destinations")]).toEqual([0, 0, 0]);
  });

  test("and takes what just fits", () => {
    const db = memory();
    const full = Object.fromEntries(TEXTS.map(([field, limit]) => [field, "x".repeat(limit)]));
    expect(refusal(db, { ...full, max_attempts: 1_000_000, ack_required: 1, not_before: 0, expires_at: MAX_TIME })).toBeNull();
    expect(refusal(db, { ack_required: 1.0, max_attempts: 3.0, user_id: "é".repeat(64), tenant_id: "😀".repeat(64) })).toBeNull();
    expect(last(db)).toMatchObject({ ack_required: 1, max_attempts: 3 });
  });

  test.each(MODES.map((mode) => [mode]))("INSERT %s: texts that are not UTF-8", (mode) => {
    const db = memory();
    for (const field of [...TEXTS.map(([name]) => name), "user_roles", "body"])
      for (const bytes of ["ff", "80", "c3", "c3a9a9", "c080", "e282", "e08080", "eda080", "f4908080", "f09f98"]) {
        const [before, behind] = field === "body" ? ["7b2261223a22", "227d"] : ["61", "62"];
        const values = { kind: "'k'", deliver_to: "'d'", [field]: `CAST(x'${before}${bytes}${behind}' AS TEXT)` };
        const statement = `INSERT ${mode} INTO dispatch_enqueue (${Object.keys(values).join()}) VALUES (${Object.values(values).join()})`;
        expect(() => db.run(statement)).toThrow(`dispatch: ${field} is not valid UTF-8`);
      }
    expect(count(db, "dispatch_outbox")).toBe(0);
  });

  test.each(MODES.map((mode) => [mode]))(
    "INSERT %s: to pass over what the table, or a trigger of somebody else's, does not take",
    (mode) => {
      const db = memory();
      db.run("CREATE TRIGGER theirs BEFORE INSERT ON dispatch_outbox WHEN NEW.kind = 'theirs' BEGIN SELECT RAISE(IGNORE); END");
      expect(refusal(db, { kind: "theirs" }, mode)).toBe("the row was not written");
      const entry = `INSERT ${mode} INTO dispatch_entry (id, signal_id, ms, kind, deliver_to, body, max_attempts) VALUES ('0', 's', 1, 'k', 'd', '{}', 8)`;
      expect(() => db.run(entry)).toThrow(/the row was not written|id_is_32_hex_digits/);
      expect(count(db, "dispatch_outbox")).toBe(0);
    },
  );

  test("changes of the view", () => {
    const db = memory();
    insert(db);
    expect(() => db.run("UPDATE dispatch_enqueue SET kind = 'x'")).toThrow("cannot modify dispatch_enqueue because it is a view");
    expect(() => db.run("DELETE FROM dispatch_enqueue")).toThrow("cannot modify dispatch_enqueue because it is a view");
  });
});

describe("library and SQL door agree", () => {
  const agree = (db: Database, body: string): void => {
    let library: string | null = null;
    try {
      checkRequest({ kind: "k", deliver_to: "d" } satisfies EnqueueRequest, DEFAULT_LIMITS, body);
    } catch (error) {
      library = String(error);
    }
    const door = refusal(db, { body });
    expect({ body, library, door, agree: (library === null) === (door === null) }).toMatchObject({ agree: true });
    if (door === null)
      expect(last(db).payload).toEndWith(
        `,"body":${/^[ \t\r\n]*null[ \t\r\n]*$/.test(body) ? "{}" : body.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "")}}`,
      );
  };

  test("on the forms of a body", () => {
    const db = memory();
    for (const body of BODIES) agree(db, body);
  });

  test("on what is JSON and what is not, whatever was broken in it", () => {
    const db = memory();
    const piece = fc.constantFrom(
      ...Array.from("{}[]:,\"\\ \t\n0123456789+-.eEulxnatrfs/*'"),
      '"a"',
      "null",
      "true",
      "\\u",
      "\\ud83d",
      "\\ude00",
      "d8",
      "1.5",
      '{"a":',
      "Infinity",
    );
    const broken = fc
      .tuple(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }), fc.array(fc.tuple(fc.nat(), fc.nat(2), piece), { maxLength: 3 }))
      .map(([value, slips]) => {
        let text = JSON.stringify(value);
        for (const [at, gone, put] of slips)
          text = text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + gone);
        return text;
      });
    fc.assert(
      fc.property(broken, (body) => {
        fc.pre(body.isWellFormed());
        agree(db, body);
      }),
      { numRuns: 3_000 },
    );
  });

  test("on the halves of characters", () => {
    const db = memory();
    const unit = fc.constantFrom("\\ud83d", "\\uDE00", "\\uD800", "\\udfff", "\\u0041", "\\\\", '\\"', "a", "\\n", "ud83d");
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (units) => agree(db, `{"${units.join("")}":"${units.join("")}"}`)),
      { numRuns: 2_000 },
    );
  });

  test("on what is UTF-8, as everybody else does", () => {
    const db = memory();
    const byte = fc.oneof(
      fc.integer({ min: 1, max: 255 }),
      fc.constantFrom(0x41, 0x80, 0x9f, 0xa0, 0xbf, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4),
    );
    const char = fc
      .string({ unit: "binary", minLength: 1, maxLength: 8 })
      .map((text) => [...Buffer.from(text)].filter((each) => each !== 0));
    const statement = db.query("INSERT INTO dispatch_enqueue (kind, deliver_to) VALUES (CAST(? AS TEXT), 'd')");
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            char,
            byte.map((each) => [each]),
          ),
          { minLength: 1, maxLength: 12 },
        ),
        (parts) => {
          const bytes = Uint8Array.from(parts.flat().slice(0, 255));
          fc.pre(bytes.length > 0);
          let valid = true;
          try {
            new TextDecoder("utf-8", { fatal: true }).decode(bytes);
          } catch {
            valid = false;
          }
          let taken = true;
          try {
            statement.run(bytes);
          } catch {
            taken = false;
          }
          expect({ bytes, taken }).toEqual({ bytes, taken: valid });
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
