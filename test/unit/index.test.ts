import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  ack,
  cancel,
  countPending,
  deliver,
  enqueue,
  type EnqueueRequest,
  get,
  install,
  list,
  OutboxError,
  purge,
  retry,
  revive,
} from "../../src/index.ts";
import { count } from "../fixtures/world.ts";

const PING: EnqueueRequest = { kind: "ping", deliver_to: "seat-1" };

/** A program's database: a table of its own and the outbox. */
function shop(options?: ConstructorParameters<typeof Database>[1]): Database {
  const db = new Database(":memory:", options);
  db.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER)");
  install(db);
  return db;
}

function refusal(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    if (error instanceof OutboxError) return `${error.kind}: ${error.message}; ${error.hint}`;
    throw error;
  }
  return "accepted";
}

const rows = (db: Database): number[] => ["orders", "dispatch_outbox", "status_transitions"].map((table) => count(db, table));

describe("in the program's transaction", () => {
  test("messages and business commit together", () => {
    const db = shop();
    db.transaction(() => {
      db.run("INSERT INTO orders VALUES (7, 1)");
      enqueue(db, PING);
      enqueue(db, PING);
    })();
    expect(rows(db)).toEqual([1, 2, 2]);
  });

  test("messages and business roll back together", () => {
    const db = shop();
    const change = db.transaction(() => {
      db.run("INSERT INTO orders VALUES (7, 1)");
      enqueue(db, PING);
      enqueue(db, PING);
      throw new Error("changed its mind");
    });
    expect(() => change.immediate()).toThrow("changed its mind");
    expect(rows(db)).toEqual([0, 0, 0]);
  });

  test("a BEGIN of the program's own is left open", () => {
    const db = shop();
    db.run("BEGIN");
    enqueue(db, PING);
    revive(db, ["a", "b"], { reset_epoch: 0 });
    purge(db, 1);
    expect(db.inTransaction).toBe(true);
    db.run("ROLLBACK");
    expect(rows(db)).toEqual([0, 0, 0]);
  });

  test("a refused message leaves the transaction usable, and what it did before", () => {
    const db = shop();
    db.transaction(() => {
      db.run("INSERT INTO orders VALUES (7, 1)");
      expect(refusal(() => enqueue(db, { kind: "", deliver_to: "x" }))).toBe("data: kind is empty; ");
      expect(refusal(() => revive(db, ["a", ""], { reset_epoch: 1 }))).toStartWith("data: the seat is empty");
      enqueue(db, PING);
    })();
    expect(rows(db)).toEqual([1, 1, 1]);
  });

  test("what the database refuses takes back the whole call and nothing more", () => {
    const db = shop();
    db.run("CREATE TRIGGER t BEFORE INSERT ON dispatch_outbox WHEN NEW.deliver_to = 'b' BEGIN SELECT RAISE(ABORT, 'not b'); END");
    db.transaction(() => {
      enqueue(db, PING);
      expect(() => revive(db, ["a", "b"], { reset_epoch: 0 })).toThrow("not b");
    })();
    expect(rows(db)).toEqual([0, 1, 1]);
  });

  test("install is a part of it too", () => {
    const db = new Database(":memory:");
    db.run("CREATE TABLE orders (id)");
    db.run("BEGIN");
    install(db);
    db.run("ROLLBACK");
    expect(db.query("SELECT name FROM sqlite_schema").values()).toEqual([["orders"]]);
  });
});

describe("outside of a transaction each call is whole by itself", () => {
  test("an audited deletion is not done without its audit row", () => {
    const db = shop();
    enqueue(db, PING);
    db.run("CREATE TRIGGER t BEFORE INSERT ON admin_events BEGIN SELECT RAISE(ABORT, 'no audit'); END");
    expect(() => purge(db, 1)).toThrow("no audit");
    expect(() => cancel(db, 1)).toThrow("no audit");
    expect(get(db, 1)?.status).toBe("pending");
    expect(rows(db)).toEqual([0, 1, 1]);
  });

  test("all seats or none", () => {
    const db = shop();
    db.run("CREATE TRIGGER t BEFORE INSERT ON dispatch_outbox WHEN NEW.deliver_to = 'b' BEGIN SELECT RAISE(ABORT, 'not b'); END");
    expect(() => revive(db, ["a", "b"], { reset_epoch: 0 })).toThrow("not b");
    expect(db.inTransaction).toBe(false);
    expect(rows(db)).toEqual([0, 0, 0]);
  });
});

describe.each([
  ["neither option", undefined],
  ["strict", { strict: true }],
  ["safeIntegers", { safeIntegers: true }],
  ["both", { strict: true, safeIntegers: true }],
] as const)("a handle opened with %s", (_, options) => {
  test("goes through everything", () => {
    const db = shop(options);
    const first = enqueue(db, { ...PING, ack_required: true, dedup_key: "k" });
    expect(first).toMatchObject({ seq: 1, outcome: "created", status: "pending", attempt: 0, differs: [] });
    expect(enqueue(db, { ...PING, dedup_key: "k" })).toMatchObject({ id: first.id, outcome: "duplicate", differs: ["ack_required"] });
    expect(get(db, first.id)).toMatchObject({ seq: 1, attempt: 0, max_attempts: 8, ack_required: 1 });
    expect(ack(db, first.id, "wrong")).toBe("mismatch");
    expect(ack(db, "1", first.ack_token ?? "")).toBe("acked");
    expect(ack(db, 1, first.ack_token ?? "")).toBe("already_acked");
    expect(revive(db, ["a", "b", "a"], { reset_epoch: 1_767_225_600.5, max_attempts: 3 }).map((answer) => answer.seq)).toEqual([2, 3, 2]);
    expect(list(db, { kind: "revival_ping", deliver_to: ["a", "c"] })).toMatchObject([
      { seq: 2, dedup_key: "revival:a:1767225600.5", max_attempts: 3 },
    ]);
    expect(cancel(db, 2, { actor: "anna" }).outcome).toBe("changed");
    expect(retry(db, 2).outcome).toBe("past_expiry");
    expect(retry(db, 2, { expires_at: 5e9, not_before: 4e9 }).outcome).toBe("changed");
    expect(get(db, 2)).toMatchObject({ status: "pending", next_attempt_at: 4e9, expires_at: 5e9 });
    expect(purge(db, 2, { dry_run: true }).outcome).toBe("changed");
    expect(purge(db, 2).outcome).toBe("changed");
    expect(get(db, 2)).toBeNull();
    expect(db.query("SELECT action, actor FROM admin_events").values()).toEqual([
      ["dispatch.cancel", "anna"],
      ["dispatch.retry", "library"],
      ["dispatch.purge", "library"],
    ]);
  });
});

test("a TEMP table of the program does not come between", () => {
  const db = shop();
  for (const table of ["dispatch_outbox", "dispatch_schema", "status_transitions", "admin_events"])
    db.run(`CREATE TEMP TABLE ${table} (version, id, status)`);
  const { id } = enqueue(db, PING);
  expect([get(db, id)?.seq, list(db).length, cancel(db, id).outcome]).toEqual([1, 1, "changed"]);
  expect([count(db, "main.dispatch_outbox"), count(db, "temp.dispatch_outbox"), count(db, "main.admin_events")]).toEqual([1, 0, 1]);
});

describe("a database that is not ready", () => {
  const CALLS: readonly (readonly [string, (db: Database) => unknown])[] = [
    ["enqueue", (db) => enqueue(db, PING)],
    ["revive", (db) => revive(db, ["a"], { reset_epoch: 0 })],
    ["ack", (db) => ack(db, 1, "x")],
    ["get", (db) => get(db, 1)],
    ["list", (db) => list(db)],
    ["countPending", (db) => countPending(db)],
    ["retry", (db) => retry(db, 1)],
    ["cancel", (db) => cancel(db, 1)],
    ["purge", (db) => purge(db, 1)],
  ];

  test.each(CALLS)("%s() says that the tables are missing, and how to get them", (_, call) => {
    const db = new Database(":memory:");
    const missing = "no: database :memory: has no outbox tables; add them once with install(db) or `outbox migrate --install`";
    expect(refusal(() => call(db))).toBe(missing);
    db.run("CREATE TABLE orders (id)");
    expect(refusal(() => call(db))).toBe(missing);
    expect(db.query("SELECT name FROM sqlite_schema").values()).toEqual([["orders"]]);
  });

  test.each(CALLS)("%s() refuses a schema that it does not know", (_, call) => {
    const db = shop();
    db.run("UPDATE dispatch_schema SET version = 99");
    expect(refusal(() => call(db))).toStartWith("settings: database :memory: has schema 99, this outbox knows up to ");
    db.run("UPDATE dispatch_schema SET version = 0");
    expect(refusal(() => call(db))).toEndWith("run: outbox migrate");
    expect(rows(db)).toEqual([0, 0, 0]);
  });

  test("install() refuses what is taken", () => {
    const db = new Database(":memory:");
    db.run("CREATE TABLE admin_events (id)");
    expect(refusal(() => install(db))).toBe("no: the database has admin_events already, and not from outbox; use another database file");
  });
});

describe("a body", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;

  const REFUSED: readonly (readonly [string, object, RegExp])[] = [
    ["circular", circular, /^data: the body cannot be written as JSON: /],
    ["with a BigInt", { n: 1n }, /^data: the body cannot be written as JSON: /],
    ["whose toJSON throws", { toJSON: () => JSON.parse("{") as unknown }, /^data: the body cannot be written as JSON: /],
    ["whose toJSON gives a text", { toJSON: () => "text" }, /^data: the body is a string, not an object; /],
    ["whose toJSON gives nothing", { toJSON: () => undefined }, /^data: the body has no JSON form; /],
    ["that is an array", [1], /^data: the body is an array, not an object; /],
    ["that is a Date", new Date(0), /^data: the body is of the type Date, which JSON does not keep; /],
    ["with half a character", { a: "\uD800" }, /^data: the body has an escaped lone surrogate/],
    ["over the limit", { a: "x".repeat(1_048_576) }, /^data: the body has at least \d+ bytes; the limit is 1048576; /],
  ];
  test.each(REFUSED)("%s is refused and nothing is stored", (_, body, said) => {
    const db = shop();
    expect(refusal(() => enqueue(db, { ...PING, body }))).toMatch(said);
    expect(rows(db)).toEqual([0, 0, 0]);
  });

  test("is written as JSON once, when it is entered", () => {
    const db = shop();
    let asked = 0;
    const body = { toJSON: () => ({ asked: (asked += 1) }) };
    const { id } = enqueue(db, { ...PING, body });
    expect(asked).toBe(1);
    expect(JSON.parse(get(db, id)?.payload ?? "")).toMatchObject({ dispatch_id: id, body: { asked: 1 } });
  });
});

describe("an ID", () => {
  test.each(["", "x", "-1", "1.5", "0x1", " 1", "D".repeat(32), "d".repeat(31), Number.NaN, -1, 1.5, 99])("%p names nothing", (id) => {
    const db = shop();
    enqueue(db, PING);
    expect([get(db, id), ack(db, id, "x"), retry(db, id).outcome, cancel(db, id).outcome, purge(db, id).outcome]).toEqual([
      null,
      "not_found",
      "not_found",
      "not_found",
      "not_found",
    ]);
  });
});

describe("countPending()", () => {
  test("counts what has not come to its end, claimed or not, in the transaction that asks", () => {
    const db = shop();
    expect(countPending(db)).toBe(0);
    enqueue(db, { kind: "k", deliver_to: "d" });
    enqueue(db, { kind: "k", deliver_to: "d", not_before: 4e9 });
    enqueue(db, { kind: "k", deliver_to: "d" }, { claim: true });
    cancel(db, 1);
    expect(countPending(db)).toBe(2);
    expect(() =>
      db.transaction(() => {
        enqueue(db, { kind: "k", deliver_to: "d" });
        expect(countPending(db)).toBe(3);
        throw new Error("back");
      })(),
    ).toThrow("back");
    expect(countPending(db)).toBe(2);
  });
});

describe("list()", () => {
  test("tells the newest 50 unless told otherwise", () => {
    const db = shop();
    for (let n = 0; n < 60; n++) enqueue(db, PING);
    expect(list(db)).toHaveLength(50);
    expect(list(db)[0]?.seq).toBe(60);
    expect(list(db, { limit: 0 })).toHaveLength(60);
    expect(list(db, { limit: 2, oldest_first: true, after: 10 }).map((row) => row.seq)).toEqual([11, 12]);
    expect(list(db, { status: "pending", reason: "enqueued", since: 0, before: 1 })).toEqual([]);
  });

  test("refuses a status that there is not, and a limit that is no count", () => {
    const db = shop();
    const status = "done" as "pending"; // as JavaScript would pass it
    expect(refusal(() => list(db, { status }))).toBe(
      'data: "done" is no status; the statuses are pending, delivering, delivered, acked, dead_letter, expired',
    );
    for (const limit of [-1, 1.5, Number.NaN])
      expect(refusal(() => list(db, { limit }))).toBe("data: limit is not a whole number, 0 or more; ");
  });
});

test("retry() refuses a time that is none", () => {
  const db = shop();
  for (const bad of [Number.NaN, -1, Infinity])
    expect(refusal(() => retry(db, 1, { expires_at: bad }))).toBe(
      "data: expires_at is not a time in epoch seconds between 1970 and 9999; ",
    );
});

test("an error of SQLite says which database and what to do", () => {
  const db = new Database("");
  install(db);
  db.run("PRAGMA query_only = ON");
  expect(refusal(() => enqueue(db, PING))).toStartWith("permission: ");
});

/** As JavaScript would call: any argument may be anything. */
const any = (value: unknown): never => value as never;

describe("what a program passes that is wrong is refused as data, in words, and changes nothing", () => {
  const wrong: readonly (readonly [what: string, call: (db: Database) => unknown, words: string])[] = [
    ["no request", (db) => enqueue(db, any(null)), "the request is null, not an object"],
    ["an Error as body", (db) => enqueue(db, { ...PING, body: new Error("x") }), "the body is of the type Error, which JSON does not keep"],
    [
      "an unknown option of a claim",
      (db) => enqueue(db, PING, any({ claim: true, lease: 5 })),
      '"lease" is none of the options of enqueue',
    ],
    ["a claim that is neither true nor false", (db) => enqueue(db, PING, any({ claim: "yes" })), "claim is neither true nor false"],
    ["no list of seats", (db) => revive(db, any("seat-1"), { reset_epoch: 0 }), "the seats are a string, not a list"],
    ["no options of revive", (db) => revive(db, ["a"], any(undefined)), "the options of revive are undefined, not an object"],
    ["a ttl in text", (db) => revive(db, ["a"], any({ reset_epoch: 5, ttl_seconds: "5" })), "ttl_seconds is not a number"],
    ["no token", (db) => ack(db, 1, any(undefined)), "the token is undefined, not a text"],
    ["no id", (db) => get(db, any(undefined)), "the id is undefined, neither a text nor a number"],
    ["an object as id", (db) => get(db, any({ seq: 1 })), "the id is an object, neither a text nor a number"],
    ["a list of ids", (db) => cancel(db, any([1, 2])), "the id is a list, neither a text nor a number"],
    ["a filter of none of the names", (db) => cancel(db, any({ seq: 1 })), '"seq" is none of the filters'],
    ["a filter that names nothing", (db) => purge(db, {}), "the filter names nothing"],
    ["a filter of empty lists", (db) => purge(db, { kind: [], status: [], since: undefined }), "the filter names nothing"],
    ["an empty list beside a filter", (db) => purge(db, { kind: [], status: "pending" }), "kind is an empty list"],
    ["an empty list", (db) => list(db, { kind: [] }), "kind is an empty list"],
    ["a reason that is none", (db) => cancel(db, { reason: "max_attempt" }), '"max_attempt" is no reason'],
    ["a whole reason code", (db) => list(db, { reason: "dispatch.pending.enqueued" }), '"dispatch.pending.enqueued" is no reason'],
    ["a filter of all that is not all", (db) => purge(db, any({ all: false })), "the filter names nothing"],
    ["all, and a filter", (db) => purge(db, any({ all: true, kind: "ping" })), "all and a filter exclude each other"],
    ["a status that cannot be retried", (db) => retry(db, { status: ["expired", "acked"] }), "retry cannot change what is acked"],
    ["a status that cannot be cancelled", (db) => cancel(db, { status: "delivered" }), "cancel cannot change what is delivered"],
    ["a page of a filter", (db) => purge(db, any({ kind: "ping", limit: 5 })), '"limit" is none of the filters'],
    ["no filter", (db) => list(db, any(null)), "the filters are null, not an object"],
    ["an unknown filter", (db) => list(db, any({ to: "seat-1" })), '"to" is none of the filters'],
    ["a number as kind", (db) => list(db, any({ kind: ["a", 5] })), "kind is neither a text nor a list of texts"],
    ["a time in text", (db) => list(db, any({ since: "2026" })), "since is not a number"],
    ["a page after an id", (db) => list(db, any({ after: "x" })), "after is not a whole number, 0 or more"],
    ["an order in text", (db) => list(db, any({ oldest_first: "no" })), "oldest_first is neither true nor false"],
    ["an actor that is no text", (db) => retry(db, 1, any({ actor: 5 })), "actor is not a text"],
    ["an empty actor", (db) => cancel(db, 1, { actor: "" }), "actor is empty"],
    ["an unknown option of retry", (db) => retry(db, 1, any({ expires_in: 5 })), '"expires_in" is none of the options of retry'],
    [
      "a due time in text",
      (db) => retry(db, 1, any({ not_before: "5" })),
      "not_before is not a time in epoch seconds between 1970 and 9999",
    ],
    ["a dry run in text", (db) => purge(db, 1, any({ dry_run: "no" })), "dry_run is neither true nor false"],
    ["force in text", (db) => purge(db, 1, any({ force: "no" })), "force is neither true nor false"],
  ];
  test.each(wrong)("%s", (_, call, words) => {
    const db = shop();
    enqueue(db, PING);
    expect(refusal(() => call(db))).toStartWith(`data: ${words}; `);
    expect(rows(db)).toEqual([0, 1, 1]);
    expect(count(db, "admin_events")).toBe(0);
  });

  test("deliver() without a claim or a function", async () => {
    const db = shop();
    const { claim } = enqueue(db, PING, { claim: true });
    const said = async (work: () => Promise<unknown>): Promise<string> => {
      const error: unknown = await work().catch((thrown: unknown) => thrown);
      return refusal(() => {
        throw error;
      });
    };
    expect(await said(() => deliver(db, any(null), () => 1))).toStartWith("data: the claim is null; deliver only what");
    expect(await said(() => deliver(db, any(claim), any("x")))).toBe("data: the handler is a string, not a function; ");
    expect(await said(() => deliver(db, any(claim), () => 1, any({ signal: 5 })))).toBe("data: signal is no AbortSignal; ");
    expect(get(db, 1)).toMatchObject({ status: "delivering", attempt: 1 });
  });
});
