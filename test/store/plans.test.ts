import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { claimNext, claimThis, endNext, patienceEnds, recount, refusalOf, staleHolders } from "../../src/store/claim.ts";
import { type Change, changeAll } from "../../src/store/changes.ts";
import { countPending, figures } from "../../src/store/figures.ts";
import { closeAll, noteFailure, noteSuccess, openCircuits } from "../../src/store/gates.ts";
import { abandon, begin, complete, forget } from "../../src/store/inbox.ts";
import { purge } from "../../src/store/operator.ts";
import { audit, byRef, history, nextMoment } from "../../src/store/queries.ts";
import { sweep } from "../../src/store/retention.ts";
import type { Selection } from "../../src/store/selection.ts";
import type { Handle } from "../../src/store/statement.ts";
import { ack, settle } from "../../src/store/transitions.ts";
import { moveAfter } from "../../src/core/lifecycle.ts";
import { enter, memory, POLICY, T0, take, terms } from "../fixtures/world.ts";

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

/** The statements of a trigger, as they can be explained: with parameters for the row, without what it raises. */
function bodyOf(trigger: string): string[] {
  const body = trigger.slice(trigger.indexOf("BEGIN") + 5, trigger.lastIndexOf("END"));
  return body
    .replace(/RAISE\(ABORT, '[^']*'\)/g, "1")
    .replace(/\b(NEW|OLD)\.(\w+)/g, "$$$1_$2")
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Enough rows, and statistics of them, that the planner has a choice to get wrong. */
function full(analyse: boolean): Database {
  const db = memory();
  db.transaction(() => {
    for (let n = 0; n < 500; n++) enter(db, { dedup_key: `k${n}`, deliver_to: `seat-${n % 20}`, not_before: T0 + (n % 50) });
  })();
  for (let n = 0; n < 200; n++) take(db, T0 + 20);
  db.run("UPDATE dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled' WHERE seq % 2 AND status = 'pending'");
  if (analyse) db.run("ANALYZE");
  return db;
}

describe.each([false, true])("with statistics: %p", (analyse) => {
  const db = full(analyse);
  /** Asking the view of one row. Holds are few: they are read. */
  const TURN = ["SEARCH o USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH p USING INDEX dispatch_line (ordering_key=? AND seq<?)", "SCAN h"];
  const DUE = "dispatch_outbox USING COVERING INDEX dispatch_due (status=? AND next_attempt_at>?)";

  function plans(work: (db: Handle) => unknown): string[][] {
    return db.transaction(() => statementsOf(db, work).map((sql) => plan(db, sql)))();
  }

  test("the claim walks the destinations by their claims and waiting time, and takes the first due row of the first that may go", () => {
    expect(plans((handle) => claimNext(handle, terms(T0 + 20), "f"))).toEqual([
      [
        "SEARCH o USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH dispatch_destinations USING COVERING INDEX dispatch_wake",
        "SCAN level",
        "SEARCH d USING COVERING INDEX dispatch_wake (flight>?)",
        "SCAN level",
        "SEARCH d USING INDEX dispatch_wake (flight=? AND wake_at<?)",
        "SEARCH f USING COVERING INDEX dispatch_flight (deliver_to=? AND next_attempt_at>?)",
        "SEARCH o USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH o USING INDEX dispatch_ready (deliver_to=? AND next_attempt_at<?)",
        ...TURN,
        "SEARCH p USING COVERING INDEX dispatch_key_flight (ordering_key=? AND next_attempt_at>?)",
      ],
    ]);
  });

  test("one row is claimed, and refused, by its number", () => {
    const steps = plans((handle) => [claimThis(handle, 1, terms(T0 + 20), "f"), refusalOf(handle, 1, terms(T0 + 20))]).flat();
    expect(steps.filter((step) => !TURN.includes(step))).toEqual([
      "SEARCH p USING COVERING INDEX dispatch_key_flight (ordering_key=? AND next_attempt_at>?)",
      "SEARCH d USING PRIMARY KEY (deliver_to=?)",
      "SEARCH f USING COVERING INDEX dispatch_flight (deliver_to=? AND next_attempt_at>?)",
      "SEARCH d USING PRIMARY KEY (deliver_to=?)",
      "SEARCH p USING COVERING INDEX dispatch_key_flight (ordering_key=? AND next_attempt_at>?)",
      "SEARCH f USING COVERING INDEX dispatch_flight (deliver_to=? AND next_attempt_at>?)",
    ]);
  });

  test("rows that ended are the first entries of two indexes", () => {
    expect(plans((handle) => endNext(handle, terms(T0 + 20)))).toEqual([
      [
        "SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH o USING INDEX dispatch_expiry (expires_at>? AND expires_at<?)",
        "SEARCH o USING INDEX dispatch_spent (next_attempt_at<?)",
      ],
    ]);
  });

  test("leases that ran out are found by status and time", () => {
    const STALE = "SEARCH s USING INDEX dispatch_due (status=? AND next_attempt_at<?)";
    expect(plans((handle) => recount(handle, T0 + 20))).toEqual([
      [
        "SEARCH d USING PRIMARY KEY (deliver_to=?)",
        STALE,
        "SEARCH f USING COVERING INDEX dispatch_flight (deliver_to=? AND next_attempt_at>?)",
        "SEARCH f USING COVERING INDEX dispatch_flight (deliver_to=? AND next_attempt_at>?)",
      ],
    ]);
    expect(plans((handle) => staleHolders(handle, T0 + 20))).toEqual([[STALE]]);
    expect(plans((handle) => patienceEnds(handle, { ...terms(T0 + 20), after: T0 + 20 }))).toEqual([[STALE.replace(" s ", " o ")]]);
  });

  test("the next moment is the first entry of each index", () => {
    expect(plans((handle) => nextMoment(handle, T0))).toEqual([
      [
        "SEARCH dispatch_destinations USING COVERING INDEX dispatch_wake",
        "SCAN level",
        "SEARCH d USING COVERING INDEX dispatch_wake (flight>?)",
        "SCAN level",
        "SEARCH d USING INDEX dispatch_wake (flight=? AND wake_at>?)",
        "SCAN level",
        "SEARCH d USING INDEX dispatch_wake (flight=? AND wake_at<?)",
        "SEARCH late",
        "SEARCH r USING INDEX dispatch_ready (deliver_to=? AND next_attempt_at>?)",
        `SEARCH ${DUE}`,
        "SEARCH dispatch_outbox USING INDEX dispatch_expiry (expires_at>?)",
        "SEARCH dispatch_outbox USING INDEX dispatch_spent (next_attempt_at>?)",
        "SEARCH dispatch_holds USING COVERING INDEX dispatch_hold_ends (ends_at>?)",
      ],
    ]);
  });

  test("circuits are noted by destination, and the open ones have an index", () => {
    const circuit = { failures: 1, cooldownS: 60 };
    expect(plans((handle) => [noteFailure(handle, "seat-1", circuit, T0), noteSuccess(handle, "seat-1")]).flat()).toEqual(
      Array(4).fill("SEARCH dispatch_destinations USING PRIMARY KEY (deliver_to=?)"),
    );
    expect(plans((handle) => closeAll(handle)).flat()).toEqual(["SEARCH dispatch_destinations USING INDEX dispatch_open (open_until>?)"]);
    expect(plans((handle) => openCircuits(handle, 100)).flat()).toEqual(["SCAN dispatch_destinations USING INDEX dispatch_opened"]);
  });

  test("a sweep removes by status and age, and forgets destinations from the end where the idle ones stand", () => {
    const windows = { deliveredS: 1, deadLetterS: 1, inboxS: 0 };
    const sweeps = { windows, now: T0 + 1e6, isLate: () => true, isAlive: () => false, progress: null };
    const steps = plans((handle) => sweep(handle, sweeps)).flat();
    expect(new Set(steps)).toEqual(
      new Set([
        "SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH dispatch_outbox USING INDEX dispatch_finished (status=? AND updated_at<?)",
        "SEARCH status_transitions USING INDEX status_transitions_of_entity (entity_id=?)",
        "SEARCH dispatch_destinations USING PRIMARY KEY (deliver_to=?)",
        "SEARCH d USING INDEX dispatch_wake (flight=? AND wake_at=?)",
        "SEARCH o USING COVERING INDEX dispatch_flight (deliver_to=?)",
        "SCAN dispatch_told",
      ]),
    );
  });

  test("an inbox is read by its key, and swept from the oldest entry on", () => {
    const standing = () => "gone" as const;
    const asked = { now: T0, holder: "desk 1 1", standing };
    const KEY = "SEARCH dispatch_inbox USING PRIMARY KEY (consumer=? AND dispatch_id=?)";
    const steps = plans((handle) => {
      const first = begin(handle, { consumer: "c", id: "0".repeat(32) }, { ...asked, token: "t" });
      begin(handle, { consumer: "c", id: "0".repeat(32) }, { ...asked, token: "u" });
      if (first.outcome === "begun") complete(handle, first.claim, T0);
      if (first.outcome === "begun") abandon(handle, first.claim);
      forget(handle, { now: T0, before: T0, skip: 0, limit: 1, isAlive: () => false });
    });
    const [sweeps, ...removed] = steps.slice(-2);
    expect(steps.slice(0, -2).flat()).toEqual(Array(4).fill(KEY));
    expect(sweeps?.filter((step) => !step.includes("CONSTANT"))).toEqual([
      "SEARCH dispatch_inbox USING COVERING INDEX dispatch_inbox_age (<expr><?)",
      "SCAN due",
      "SEARCH i USING PRIMARY KEY (consumer=? AND dispatch_id=?)",
      "SEARCH o USING INDEX sqlite_autoindex_dispatch_outbox_1 (id=?)",
    ]);
    expect(removed.flat()).toEqual([KEY]);
  });

  test("no trigger reads a table of dispatches but by an index", () => {
    const triggers = db.query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all();
    expect(triggers.length).toBeGreaterThan(10);
    for (const { name, sql } of triggers) {
      const steps = bodyOf(sql).flatMap((part) => plan(db, part));
      // `at` and `level` are what the SQL door steps through a text with; `dispatch_kinds` holds at most a hundred.
      const scans = steps.filter(
        (step) => step.startsWith("SCAN") && !/^SCAN (h|dispatch_holds|dispatch_edges|dispatch_kinds|at|level)\b/.test(step),
      );
      // A hold that names neither destination nor key reads every row that waits, and no other.
      const all = ["SCAN dispatch_outbox USING INDEX dispatch_ready", "SCAN dispatch_outbox USING INDEX dispatch_due"];
      expect([name, scans.filter((step) => !(name.startsWith("dispatch_hold_") && all.includes(step)))]).toEqual([name, []]);
    }
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

  test("a change of many finds its rows in an index and looks at each by its number", () => {
    const named = (selection: Selection, change: Change = { verb: "cancel" }): string[] =>
      [...new Set(plans((handle) => changeAll(handle, { change, selection, actor: "anna", dryRun: true }, T0)).flat())].toSorted();
    const each = "SEARCH o USING INTEGER PRIMARY KEY (rowid=?)";
    const due = "SEARCH dispatch_outbox USING COVERING INDEX dispatch_due (status=?)";
    const finished = "SEARCH dispatch_outbox USING COVERING INDEX dispatch_finished (status=? AND updated_at>? AND updated_at<?)";
    expect(named({})).toEqual([due, each]);
    expect(named({ to: ["seat-1"], kind: ["ping"] })).toEqual([due, each]);
    expect(named({ orderingKey: ["a"] })).toEqual(["SCAN k", "SEARCH o USING INDEX dispatch_line (ordering_key=?)"]);
    expect(named({ dedupKey: ["k1"] })).toEqual(["SCAN k", "SEARCH o USING COVERING INDEX dispatch_dedup (dedup_key=?)", each]);
    expect(named({ since: 5, reason: ["cancelled"] }, { verb: "purge", force: false })).toEqual([finished, each]);
    expect(named({ status: ["pending", "expired"] }, { verb: "purge", force: false })).toEqual([due, finished, each]);
  });

  test("purging deletes row and history by key", () => {
    const [, row, moves] = plans((handle) => purge(handle, { seq: 500 }, { now: T0 + 1e6, actor: "anna" }));
    expect(row).toEqual(["SEARCH dispatch_outbox USING INTEGER PRIMARY KEY (rowid=?)"]);
    expect(moves).toEqual(["SEARCH status_transitions USING INDEX status_transitions_of_entity (entity_id=?)"]);
  });

  test("figures read counters, and of the rows the first entry of the index for each status", () => {
    expect(plans((handle) => figures(handle, T0 + 20))).toEqual([
      ["SEARCH dispatch_figures USING INTEGER PRIMARY KEY (rowid=?)"],
      ["SCAN dispatch_counters"], // bounded by a hundred kinds
      Array(2).fill("SEARCH dispatch_outbox USING COVERING INDEX dispatch_due (status=? AND next_attempt_at<?)"),
      ["SCAN dispatch_holds"],
    ]);
    expect(plans((handle) => countPending(handle)).flat()).toEqual(["SEARCH dispatch_figures USING INTEGER PRIMARY KEY (rowid=?)"]);
  });
});
