import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { checkRequest, type EnqueueRequest } from "../../src/core/request.ts";
import { enqueue } from "../../src/store/enqueue.ts";
import { install } from "../../src/store/migrate.ts";
import { ack } from "../../src/store/transitions.ts";
import { count, countedEntropy, enter, memory, row, T0, take } from "../fixtures/world.ts";

describe("enqueue()", () => {
  test("enters a row with every column and its history row", () => {
    const db = memory();
    const answer = enter(db, {
      kind: "revival",
      deliver_to: "seat-1",
      body: { n: 1 },
      dedup_key: "daily:1",
      ordering_key: "seat:1",
      ack_required: true,
      max_attempts: 3,
      expires_at: T0 + 600,
      not_before: T0 + 60,
      session_id: "s-1",
      schedule_run_id: "r-1",
      emitter_role: "scheduler",
      tenant_id: "acme",
      user_id: "u-1",
      user_roles: "reader,writer",
      correlation_id: "c-1",
    });
    expect(answer).toEqual({
      id: expect.stringMatching(/^d[0-9a-f]{31}$/),
      seq: 1,
      outcome: "created",
      status: "pending",
      attempt: 0,
      next_attempt_at: T0 + 60,
      expires_at: T0 + 600,
      ack_token: expect.stringMatching(/^f[0-9a-f]{31}$/),
      differs: [],
    });
    expect(row(db, 1)).toEqual({
      seq: 1,
      id: answer.id,
      kind: "revival",
      deliver_to: "seat-1",
      payload: expect.stringMatching(/"body":\{"n":1\}\}$/),
      dedup_key: "daily:1",
      ordering_key: "seat:1",
      status: "pending",
      attempt: 0,
      max_attempts: 3,
      next_attempt_at: T0 + 60,
      ack_required: 1,
      ack_token: answer.ack_token,
      lock_token: null,
      holder: null,
      unresolved: 0,
      session_id: "s-1",
      schedule_run_id: "r-1",
      tenant_id: "acme",
      user_id: "u-1",
      user_roles: "reader,writer",
      correlation_id: "c-1",
      last_error: null,
      created_at: T0,
      expires_at: T0 + 600,
      updated_at: T0,
      reason_code: "dispatch.pending.enqueued",
      reason_summary: "enqueued kind=revival",
      source: "system",
      actor: "enqueue_dispatch",
      metadata: "{}",
    });
    // ADR-0059 D2
    expect(db.query("SELECT * FROM status_transitions").all()).toEqual([
      {
        id: 1,
        entity_type: "dispatch",
        entity_id: answer.id,
        previous_status: null,
        status: "pending",
        reason_code: "dispatch.pending.enqueued",
        reason_summary: "enqueued kind=revival",
        evidence_refs: "[]",
        source: "system",
        actor: "enqueue_dispatch",
        created_at: T0,
        metadata: "{}",
      },
    ]);
  });

  test("column and envelope agree, to the millisecond", () => {
    const db = memory();
    enter(db, { ack_required: true }, T0 + 0.123_456_7);
    const entered = row(db, 1);
    expect(entered.created_at).toBe(T0 + 0.123);
    expect(JSON.parse(entered.payload)).toMatchObject({
      created_at: entered.created_at,
      dispatch_id: entered.id,
      kind: entered.kind,
      deliver_to: entered.deliver_to,
      ack_token: entered.ack_token,
      attempt: 0,
    });
  });

  test("without a key every call makes a row", () => {
    const db = memory();
    expect([enter(db), enter(db), enter(db)].map((answer) => answer.seq)).toEqual([1, 2, 3]);
  });

  test("a number is never used twice, also after the last row was deleted", () => {
    const db = memory();
    enter(db);
    db.run("DELETE FROM dispatch_outbox");
    expect(enter(db).seq).toBe(2);
  });

  test.each([
    ["at once", {}, T0],
    ["at once when not_before has passed", { not_before: T0 - 5 }, T0],
    ["at not_before", { not_before: T0 + 5 }, T0 + 5],
    ["at its expiry when that has passed", { expires_at: T0 - 5 }, T0 - 5],
    ["at once before its expiry", { expires_at: T0 + 5 }, T0],
  ] as const)("is first due %s", (_, times, due) => {
    const db = memory();
    expect(enter(db, times).next_attempt_at).toBe(due);
    expect(row(db, 1).next_attempt_at).toBe(due);
  });

  test("one already past its expiry is accepted and ends expired", () => {
    const db = memory();
    enter(db, { expires_at: T0 - 5 });
    expect(take(db, T0)).toMatchObject({ status: "expired", reason_code: "dispatch.expired.deadline", attempt: 0 });
  });

  test("a body comes back to the letter", () => {
    const db = memory();
    const body = '{ "b":9007199254740993,\n "a":1.0, "a":2, "\\u00e9":"é" }';
    enqueue(db, checkRequest({ kind: "k", deliver_to: "d" }, undefined, ` ${body}\n`), T0, countedEntropy());
    expect(row(db, 1).payload.endsWith(`,"body":${body}}`)).toBe(true);
  });

  test("all that stands in one transaction is there or is not", () => {
    const db = memory();
    const both = db.transaction(() => {
      enter(db);
      enter(db);
      throw new Error("the program changed its mind");
    });
    expect(() => both()).toThrow("changed its mind");
    expect([count(db, "dispatch_outbox"), count(db, "status_transitions")]).toEqual([0, 0]);
  });

  test("a TEMP table of the same name does not come between", () => {
    const db = memory();
    for (const table of ["dispatch_outbox", "status_transitions", "dispatch_edges"]) db.run(`CREATE TEMP TABLE ${table} (seq)`);
    enter(db, { dedup_key: "k" });
    expect(enter(db, { dedup_key: "k" }).outcome).toBe("duplicate");
    expect([count(db, "main.dispatch_outbox"), count(db, "main.status_transitions"), count(db, "temp.dispatch_outbox")]).toEqual([1, 1, 0]);
  });

  test.each([
    ["neither option", undefined],
    ["strict", { strict: true }],
    ["safeIntegers", { safeIntegers: true }],
    ["both", { strict: true, safeIntegers: true }],
  ] as const)("works on a handle opened with %s", (_, options) => {
    const db = new Database(":memory:", options);
    install(db);
    const first = enter(db, { dedup_key: "k", ack_required: true });
    expect(first.seq).toBe(1);
    expect(enter(db, { dedup_key: "k", ack_required: true })).toEqual({ ...first, outcome: "duplicate" });
    expect(ack(db, { seq: 1 }, first.ack_token ?? "", T0)).toBe("acked");
  });
});

describe("a duplicate", () => {
  const FIRST: EnqueueRequest = {
    kind: "ping",
    deliver_to: "seat-1",
    body: { n: 1 },
    dedup_key: "k",
    ack_required: true,
    max_attempts: 3,
    expires_at: T0 + 600,
    not_before: T0 + 60,
    session_id: "s",
    schedule_run_id: "r",
    emitter_role: "e",
  };

  test("answers with the first row as it is now, and changes nothing", () => {
    const db = memory();
    const first = enter(db, FIRST);
    take(db, T0 + 60);
    const before = [row(db, 1), count(db, "status_transitions")];
    expect(enter(db, FIRST, T0 + 61)).toEqual({
      ...first,
      outcome: "duplicate",
      status: "delivering",
      attempt: 1,
      next_attempt_at: T0 + 75,
    });
    expect([row(db, 1), count(db, "status_transitions")]).toEqual(before);
  });

  test.each([
    [{}, []],
    [{ kind: "pong" }, ["kind"]],
    [{ deliver_to: "seat-2" }, ["deliver_to"]],
    [{ body: { n: 2 } }, ["body"]],
    [{ body: null }, []],
    [{ ack_required: false }, ["ack_required"]],
    [{ ack_required: null }, ["ack_required"]],
    [{ max_attempts: 4 }, ["max_attempts"]],
    [{ max_attempts: null }, []],
    [{ expires_at: T0 + 601 }, ["expires_at"]],
    [{ expires_at: null }, []],
    [{ not_before: T0 + 61 }, ["not_before"]],
    [{ not_before: null }, []],
    [{ session_id: "x" }, ["session_id"]],
    [{ ordering_key: "x" }, ["ordering_key"]],
    [{ schedule_run_id: "x" }, ["schedule_run_id"]],
    [{ emitter_role: "x" }, ["emitter_role"]],
    [{ tenant_id: "x", user_id: "x" }, ["tenant_id", "user_id"]],
    [{ user_roles: "x", correlation_id: "x" }, ["user_roles", "correlation_id"]],
    [{ kind: "pong", body: {}, emitter_role: "x" }, ["kind", "body", "emitter_role"]],
  ] as const)("that asks for %p differs in %p", (asked, differs) => {
    const db = memory();
    enter(db, FIRST);
    expect(enter(db, { ...FIRST, ...asked }).differs).toEqual([...differs]);
  });

  test("does not differ in a not_before that had passed for both", () => {
    const db = memory();
    enter(db, { dedup_key: "k", not_before: T0 - 60 });
    expect(enter(db, { dedup_key: "k", not_before: T0 - 60 }, T0 + 5).differs).toEqual([]);
  });

  test("does not differ in when a row was first due that has been tried since", () => {
    const db = memory();
    enter(db, { dedup_key: "k", not_before: T0 + 1 });
    take(db, T0 + 1);
    expect(enter(db, { dedup_key: "k", not_before: T0 + 2 }).differs).toEqual([]);
  });

  test("is one as long as the row exists, also after its delivery", () => {
    const db = memory();
    const { id, ack_token } = enter(db, { dedup_key: "k", ack_required: true });
    ack(db, { id }, ack_token ?? "", T0);
    expect(enter(db, { dedup_key: "k", ack_required: true })).toMatchObject({ id, outcome: "duplicate", status: "acked" });
    db.run("DELETE FROM dispatch_outbox");
    expect(enter(db, { dedup_key: "k" }).outcome).toBe("created");
  });

  test("of a line of the same transaction is one too", () => {
    const db = memory();
    const [first, second] = db.transaction(() => [enter(db, { dedup_key: "k" }), enter(db, { dedup_key: "k" })])();
    expect(second?.id).toBe(first?.id ?? "");
  });
});
