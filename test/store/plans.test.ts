import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { figures } from "../../src/store/figures.ts";
import { purge } from "../../src/store/operator.ts";
import { audit, byRef, history, nextMoment } from "../../src/store/queries.ts";
import type { Handle } from "../../src/store/statement.ts";
import { ack, settle } from "../../src/store/transitions.ts";
import { moveAfter } from "../../src/core/lifecycle.ts";
import { enter, memory, POLICY, T0, take } from "../fixtures/world.ts";

/** The statements that the work prepares, as the handle sees them. */
function statementsOf(db: Database, work: (db: Handle) => unknown): string[] {
  const seen: string[] = [];
  const watched = new Proxy(db, {
    get(target, name) {
      if (name === "query")
        return (sql: string) => {
          seen.push(sql);
          return target.query(sql);
        };
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  work(watched);
  return seen;
}

/** The steps of the query plan that touch a table of ours; `json_each` and the results of subqueries are none. */
function plan(db: Database, sql: string): string[] {
  // Bun leaves an explained UPDATE unfinished, and an open statement keeps its transaction from ending.
  using explained = db.prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`);
  return explained
    .all()
    .map((step) => step.detail.replace(" main.", " "))
    .filter((detail) => /^(SCAN|SEARCH)/.test(detail) && !/VIRTUAL TABLE|^(SCAN|SEARCH) (\(subquery-\d+\)|CONSTANT ROW)/.test(detail));
}

/** Enough rows, and statistics of them, that the planner has a choice to get wrong. */
function full(analyse: boolean): Database {
  const db = memory();
  db.transaction(() => {
    for (let n = 0; n < 500; n++) enter(db, { dedup_key: `k${n}`, not_before: T0 + (n % 50) });
  })();
  for (let n = 0; n < 200; n++) take(db, T0 + 20);
  db.run("UPDATE dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled' WHERE seq % 2 AND status = 'pending'");
  if (analyse) db.run("ANALYZE");
  return db;
}

describe.each([false, true])("with statistics: %p", (analyse) => {
  const db = full(analyse);
  const DUE = "dispatch_outbox USING COVERING INDEX dispatch_due (status=? AND next_attempt_at>?)";

  function plans(work: (db: Handle) => unknown): string[][] {
    return db.transaction(() => statementsOf(db, work).map((sql) => plan(db, sql)))();
  }

  test("the claim searches the index of due rows for each status and updates by number", () => {
    const [claim = [], ...more] = plans((handle) => take(handle, T0 + 20));
    expect(more).toEqual([]);
    expect(claim.filter((step) => /dispatch_due/.test(step))).toEqual([
      "SEARCH o USING INDEX dispatch_due (status=? AND next_attempt_at<?)",
      "SEARCH o USING INDEX dispatch_due (status=? AND next_attempt_at<?)",
    ]);
    expect(claim).toContain("SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)");
    expect(claim).toHaveLength(3);
  });

  test("the next moment is the first entry of the index for each status", () => {
    expect(plans((handle) => nextMoment(handle, T0))).toEqual([[`SEARCH ${DUE}`, `SEARCH ${DUE}`]]);
  });

  test("a dedup key is looked up in its index", () => {
    const [lookUp] = plans((handle) => enter(handle, { dedup_key: "k7" }));
    expect(lookUp).toEqual(["SEARCH dispatch_outbox USING INDEX dispatch_dedup (dedup_key=?)"]);
  });

  test("a dispatch is found by id and by number", () => {
    expect(plans((handle) => byRef(handle, { id: "0" }))).toEqual([
      ["SEARCH dispatch_outbox USING INDEX sqlite_autoindex_dispatch_outbox_1 (id=?)"],
    ]);
    expect(plans((handle) => byRef(handle, { seq: 1 }))).toEqual([["SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)"]]);
  });

  test("settling and acknowledging go by number", () => {
    const claim = { attempt: 1, max_attempts: 8, ack_required: 0, expires_at: null, unresolved: 0 };
    const move = moveAfter({ kind: "released", error: "", exhausted: false }, claim, POLICY, T0, 0);
    const settled = plans((handle) => settle(handle, { seq: 0, attempt: 1, lockToken: "" }, move, T0, "h"));
    expect(settled.flat()).toEqual(Array(2).fill("SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)"));
    expect(plans((handle) => ack(handle, { seq: 1 }, "", T0)).flat()).toEqual([
      "SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)",
    ]);
  });

  test("history and audit are read by their indexes", () => {
    expect(plans((handle) => [history(handle, "x"), audit(handle, "x")])).toEqual([
      ["SEARCH status_transitions USING INDEX status_transitions_of_entity (entity_id=?)"],
      ["SEARCH admin_events USING INDEX admin_events_of_target (target_id=?)"],
    ]);
  });

  test("purging deletes row and history by key", () => {
    const [, row, moves] = plans((handle) => purge(handle, { seq: 500 }, { now: T0 + 1e6, actor: "anna" }));
    expect(row).toEqual(["SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)"]);
    expect(moves).toEqual(["SEARCH status_transitions USING INDEX status_transitions_of_entity (entity_id=?)"]);
  });

  test("the oldest due row is the first entry of the index for each status", () => {
    const [, oldest] = plans((handle) => figures(handle, T0 + 20));
    expect(oldest).toEqual(Array(2).fill("SEARCH dispatch_outbox USING COVERING INDEX dispatch_due (status=? AND next_attempt_at<?)"));
  });
});
