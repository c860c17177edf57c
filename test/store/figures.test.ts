import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { EDGES, moveAfter, shortReason, type Status, STATUSES } from "../../src/core/lifecycle.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { claimNext, endNext } from "../../src/store/claim.ts";
import { countPending, type Figures, figures } from "../../src/store/figures.ts";
import { closeAll, noteFailure, noteSuccess, openCircuits } from "../../src/store/gates.ts";
import { breaches } from "../../src/store/invariants.ts";
import { cancel, purge, retry } from "../../src/store/operator.ts";
import { ack, settle } from "../../src/store/transitions.ts";
import { enter, entropy, memory, POLICY, row, T0, take, terms } from "../fixtures/world.ts";

const MODES = ["", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK"] as const;
const LATER = T0 + 1e6;
const REPORT = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
const ANNA = { now: T0, actor: "anna" };

/** Moves a row by hand; its attempt number follows the move. */
function move(db: Database, seq: number, to: Status, reason: string, mode = "", otherwise: { actor?: string; now?: number } = {}): void {
  const { attempt, actor } = row(db, seq);
  const short = reason.slice(reason.lastIndexOf(".") + 1);
  const after = { released: attempt - 1, config_fault: attempt - 1, operator_retry: 0 }[short] ?? attempt;
  db.query(
    `UPDATE ${mode} dispatch_outbox SET status = ?, reason_code = ?, attempt = ?, lock_token = ?, next_attempt_at = ?, updated_at = ?, actor = ? WHERE seq = ?`,
  ).run(
    to,
    reason,
    to === "delivering" ? attempt + 1 : after,
    to === "delivering" ? entropy.token() : null,
    T0,
    otherwise.now ?? T0,
    otherwise.actor ?? actor,
    seq,
  );
}

const claim = (db: Database, seq: number, mode = "", at = T0): void =>
  move(db, seq, "delivering", "dispatch.delivering.attempt", mode, { actor: "desk 1 1", now: at });

/** Brings a new row into the status by lawful moves. */
function walked(db: Database, to: Status | null, ackRequired: boolean, mode: string): number {
  const { seq } = enter(db, { ack_required: ackRequired });
  if (to === null || to === "pending") return seq;
  claim(db, seq, mode);
  const last = {
    delivering: null,
    delivered: "dispatch.delivered.transport_ok",
    acked: "dispatch.acked.consumer",
    dead_letter: "dispatch.dead_letter.rejected",
    expired: "dispatch.expired.deadline",
  }[to];
  if (last !== null) move(db, seq, to, last, mode);
  return seq;
}

/** What the counters say: the two that never fall, by their label alone, and the dead letters there are. */
function told(db: Database): {
  readonly attempts: object;
  readonly died: object;
  readonly dead: object;
  readonly status: Figures["status"];
} {
  const { attempts, dead_letters_total: died, dead_letters: dead, status } = figures(db, T0);
  return {
    attempts: Object.fromEntries(attempts.map(({ result, count }) => [result, count])),
    died: Object.fromEntries(died.map(({ reason, count }) => [reason, count])),
    dead,
    status,
  };
}

describe.each(MODES)("UPDATE %s", (mode) => {
  test.each(EDGES.filter((edge) => edge.from !== null).map(({ from, to, reason }) => [from ?? "pending", to, reason] as const))(
    "%s to %s, %s: every counter is the count",
    (from, to, reason) => {
      const db = memory();
      const isAck = to === "pending" && reason === "dispatch.delivered.transport_ok";
      const seq = walked(db, from, isAck, mode);
      const before = told(db);
      move(db, seq, to, reason, mode, { now: T0 + 1 });
      expect(breaches(db, LATER)).toEqual([]);
      const after = told(db);
      expect(after.status).toEqual({
        ...before.status,
        [from]: before.status[from] - 1,
        [to]: before.status[to] + (from === to ? 0 : 1),
        ...(from === to ? { [from]: 1 } : {}),
      });
      const word = reason.slice(reason.lastIndexOf(".") + 1);
      const result = to === "delivering" || to === "expired" ? "lost" : word;
      expect(after.attempts).toEqual(from === "delivering" ? { ...before.attempts, [result]: 1 } : before.attempts);
      expect(after.died).toEqual(to === "dead_letter" ? { [word]: 1 } : before.died);
      expect(after.dead).toEqual(to === "dead_letter" ? { [word]: 1 } : {});
      db.run("DELETE FROM dispatch_outbox");
      expect(told(db)).toEqual({ ...told(db), status: told(memory()).status, died: after.died, dead: {} });
      expect(breaches(db, LATER)).toEqual([]);
    },
  );

  test.each([["OFF"], ["ON"]])("with recursive_triggers %s, kinds past the hundredth count together", (recursive) => {
    const db = memory();
    db.run(`PRAGMA recursive_triggers = ${recursive}`);
    const seqs = Array.from({ length: 103 }, (_, n) => enter(db, { kind: `kind-${n}` }).seq);
    for (const seq of seqs) {
      claim(db, seq, mode);
      move(db, seq, "pending", "dispatch.pending.retry_backoff", mode);
      claim(db, seq, mode);
      move(db, seq, "dead_letter", "dispatch.dead_letter.rejected", mode);
    }
    const { attempts, dead_letters_total: died, dead_letters: dead } = figures(db, T0);
    expect([attempts.length, attempts.filter(({ kind }) => kind === "").map(({ count }) => count)]).toEqual([202, [3, 3]]);
    expect([died.length, died.find(({ kind }) => kind === "")?.count, dead]).toEqual([101, 3, { rejected: 103 }]);
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("a move that is refused counts nothing", () => {
    const db = memory();
    const seqs = STATUSES.map((status) => walked(db, status, false, ""));
    const before = figures(db, T0);
    for (const seq of seqs)
      for (const status of STATUSES)
        expect(() => move(db, seq, status, "dispatch.pending.enqueued", mode)).toThrow("this move is not in the lifecycle");
    expect(() => db.run(`INSERT ${mode} INTO dispatch_outbox SELECT * FROM dispatch_outbox WHERE seq = 1`)).toThrow("is taken");
    expect(figures(db, T0)).toEqual(before);
    expect(breaches(db, LATER)).toEqual([]);
  });
});

describe("the counters", () => {
  test("count a takeover that names no status", () => {
    const db = memory();
    const { seq } = enter(db);
    claim(db, seq);
    db.run(
      "UPDATE dispatch_outbox SET attempt = attempt + 1, lock_token = 'other', reason_code = 'dispatch.delivering.attempt', updated_at = updated_at + 9",
    );
    expect(told(db)).toMatchObject({ attempts: { lost: 1 }, status: { pending: 0, delivering: 1 } });
    expect(figures(db, T0).lag.count).toBe(2);
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("call an attempt lost whose runner vanished, on the last attempt too, and whatever else the runner wrote itself", () => {
    const db = memory();
    enter(db, { max_attempts: 1, kind: "vanished" });
    enter(db, { max_attempts: 1, kind: "failed" });
    take(db, T0, { holder: "desk 1 1" });
    const failed = take(db, T0, { holder: "desk 1 1" });
    if (failed === null) throw new Error("nothing to claim");
    const outcome: Outcome = { kind: "failed", report: REPORT, error: "exit 1", retryAfterMs: null };
    settle(
      db,
      { seq: failed.seq, attempt: 1, lockToken: failed.lock_token ?? "" },
      moveAfter(outcome, failed, POLICY, T0, 0),
      T0,
      "desk 1 1",
    );
    endNext(db, terms(T0 + 60, { holder: "desk 2 2" }));
    expect(figures(db, T0)).toMatchObject({
      attempts: [
        { kind: "failed", result: "max_attempts", count: 1 },
        { kind: "vanished", result: "lost", count: 1 },
      ],
      dead_letters: { max_attempts: 2 },
    });
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("keep what ever happened when rows are purged, swept or put back", () => {
    const db = memory();
    for (let n = 0; n < 4; n++) walked(db, "dead_letter", false, "");
    retry(db, { seq: 1 }, ANNA);
    purge(db, { seq: 2 }, ANNA);
    db.run("DELETE FROM dispatch_outbox WHERE seq = 3");
    db.run("DELETE FROM status_transitions");
    expect(told(db)).toMatchObject({ attempts: { rejected: 4 }, died: { rejected: 4 }, dead: { rejected: 1 } });
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("count a claim whose row is deleted as lost", () => {
    const db = memory();
    const seq = walked(db, "delivering", false, "");
    purge(db, { seq }, { ...ANNA, force: true });
    expect(told(db).attempts).toEqual({ lost: 1 });
    expect(countPending(db)).toBe(0);
  });

  test("are those of the transaction, and go back with it", () => {
    const db = memory();
    enter(db);
    const before = figures(db, T0);
    db.run("BEGIN");
    walked(db, "dead_letter", false, "");
    walked(db, "delivering", false, "");
    expect(countPending(db)).toBe(2);
    db.run("ROLLBACK");
    expect(figures(db, T0)).toEqual(before);
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("name a hundred kinds, and put all others together under none", () => {
    const db = memory();
    for (let n = 0; n < 130; n++) {
      const { seq } = enter(db, { kind: `kind-${n}` });
      for (const last of ["dispatch.pending.retry_backoff", "dispatch.dead_letter.rejected"] as const) {
        claim(db, seq);
        move(db, seq, last.includes("pending") ? "pending" : "dead_letter", last);
      }
    }
    const { attempts, dead_letters_total: died } = figures(db, T0);
    expect(new Set(attempts.map(({ kind }) => kind)).size).toBe(101);
    expect(attempts.filter(({ kind }) => kind === "")).toEqual([
      { kind: "", result: "rejected", count: 30 },
      { kind: "", result: "retry_backoff", count: 30 },
    ]);
    expect(died.find(({ kind }) => kind === "")).toEqual({ kind: "", reason: "rejected", count: 30 });
    expect(attempts.filter(({ kind }) => kind === "kind-99")).toHaveLength(2);
    expect(breaches(db, LATER)).toEqual([]);
  });

  test("tell how late each claim was, a takeover from the end of its lease", () => {
    const db = memory();
    for (const lateS of [0, 0.1, 0.5, 4, 100_000]) enter(db, { not_before: T0 - lateS }, T0 - lateS);
    for (let n = 0; n < 5; n++) claimNext(db, terms(T0, { perDestination: 100 }), entropy.token());
    const lag = figures(db, T0).lag;
    expect([lag.count, lag.buckets.map(({ count }) => count)]).toEqual([5, [2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]]);
    expect(lag.sum).toBeCloseTo(100_004.6, 3);
    claimNext(db, terms(T0 + 15 + 30), entropy.token());
    expect(figures(db, T0).lag.buckets.map(({ count }) => count)).toEqual([2, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5]);
  });

  test("tell of circuits how many are open, and name those that have been open longest", () => {
    const db = memory();
    const circuit = { failures: 1, cooldownS: 60 };
    for (let n = 0; n < 150; n++) noteFailure(db, `seat-${n}`, circuit, T0 + n);
    noteFailure(db, "seat-0", circuit, T0 + 1_000); // its probe failed: it has been open all the time
    expect(figures(db, T0).open_circuits).toBe(150);
    const listed = openCircuits(db, 100);
    expect(listed.map(({ deliver_to }) => deliver_to)).toEqual(Array.from({ length: 100 }, (_, n) => `seat-${n}`));
    expect(listed[0]).toMatchObject({ failures: 2, opened_at: T0, failed_at: T0 + 1_000 });
    noteSuccess(db, "seat-1");
    db.run("DELETE FROM dispatch_destinations WHERE deliver_to = 'seat-2'");
    expect(figures(db, T0).open_circuits).toBe(148);
    expect(breaches(db, LATER)).toEqual([]);
    closeAll(db);
    expect([figures(db, T0).open_circuits, openCircuits(db)]).toEqual([0, []]);
    noteFailure(db, "seat-3", circuit, T0 + 2_000);
    expect(openCircuits(db)).toMatchObject([{ opened_at: T0 + 2_000 }]);
  });
});

describe("a wrong counter is found:", () => {
  test.each([
    ["rows of a status", "UPDATE dispatch_figures SET delivered = 7", "the counter is not the count", "delivered"],
    ["a row that nobody counted", "DROP TRIGGER dispatch_counts_enter; -- ", "the counter is not the count", "pending"],
    [
      "dead letters",
      "UPDATE dispatch_counters SET n = 9 WHERE name = 'dead'",
      "the counter is not the count",
      "dead dispatch.dead_letter.rejected",
    ],
    ["no row", "DELETE FROM dispatch_figures", "the counter is not the count", "dead_letter"],
    ["open circuits", "UPDATE dispatch_figures SET open_circuits = 1", "the counter is not the count", "open_circuits"],
    [
      "attempts",
      "UPDATE dispatch_counters SET n = 0 WHERE name = 'attempts'",
      "the counter is less than the history tells",
      "attempts dispatch.dead_letter.rejected ping",
    ],
    [
      "deaths",
      "DELETE FROM dispatch_counters WHERE name = 'dead_letters'",
      "the counter is less than the history tells",
      "dead_letters dispatch.dead_letter.rejected ping",
    ],
    [
      "fewer than none",
      "UPDATE dispatch_counters SET n = -1 WHERE name = 'attempts'",
      "the counter cannot be",
      "attempts dispatch.dead_letter.rejected ping",
    ],
    ["the lag", "UPDATE dispatch_figures SET lag_5s = 9", "the counter cannot be", "lag"],
  ] as const)("%s", (_, sql, what, counter) => {
    const db = memory();
    walked(db, "dead_letter", false, "");
    for (const each of sql.split("; -- ")) if (each !== "") db.run(each);
    enter(db);
    expect(breaches(db, LATER)).toContainEqual({ what, counter, deliver_to: null, seq: null });
  });

  test("without their row figures say that the database is not whole", () => {
    const db = memory();
    db.run("DELETE FROM dispatch_figures");
    expect(() => figures(db, T0)).toThrow("dispatch_figures holds no row");
  });
});

test("whatever is done in whatever order, the counters are what a log of all moves tells", () => {
  const step = fc.record({
    act: fc.constantFrom("enter", "enter", "take", "take", "settle", "settle", "vanish", "ack", "cancel", "retry", "purge", "back"),
    which: fc.nat(20),
    outcome: fc.nat(5),
  });
  const OUTCOMES: readonly Outcome[] = [
    { kind: "ok", report: REPORT },
    { kind: "failed", report: REPORT, error: "exit 1", retryAfterMs: 0 },
    { kind: "rejected", report: null, error: "never" },
    { kind: "released", error: "shut down", exhausted: false },
    { kind: "fault", error: "no such command" },
    { kind: "unresolvable", error: "no route" },
  ];
  // One database, taken back after each: to make new ones would take longer than all that is played.
  const db = memory();
  // What nobody purges: each move with its kind and whose it was.
  db.run("CREATE TABLE log (kind, before, after, reason, actor, claimant)");
  db.run(
    "CREATE TRIGGER logs AFTER UPDATE OF attempt, status ON dispatch_outbox BEGIN INSERT INTO log VALUES (NEW.kind, OLD.status, NEW.status, NEW.reason_code, NEW.actor, OLD.actor); END",
  );
  db.run(
    "CREATE TRIGGER leaves AFTER DELETE ON dispatch_outbox BEGIN INSERT INTO log VALUES (OLD.kind, OLD.status, NULL, '', '', ''); END",
  );
  function played(steps: readonly { readonly act: string; readonly which: number; readonly outcome: number }[]): void {
    let now = T0;
    let runner = 1;
    const all = (): number[] =>
      db
        .query<{ seq: number }, []>("SELECT seq FROM dispatch_outbox ORDER BY seq")
        .all()
        .map(({ seq }) => seq);
    for (const { act, which, outcome } of steps) {
      now += 1;
      const seq = all()[which % Math.max(1, all().length)] ?? 0;
      const by = { now, actor: "anna" };
      if (act === "enter")
        enter(
          db,
          { kind: `kind-${which % 3}`, deliver_to: `seat-${which % 4}`, max_attempts: 1 + (outcome % 3), ack_required: outcome === 0 },
          now,
        );
      else if (act === "take") take(db, now, { holder: `desk ${runner} 1` });
      else if (act === "vanish") {
        now += 60;
        runner += 1;
      } else if (act === "cancel") cancel(db, { seq }, by);
      else if (act === "retry") retry(db, { seq }, by);
      else if (act === "purge") purge(db, { seq }, { ...by, force: which % 2 === 0 });
      else if (act === "back") {
        db.run("SAVEPOINT a");
        take(db, now);
        purge(db, { seq }, { ...by, force: true });
        db.run("ROLLBACK TO a");
        db.run("RELEASE a");
      } else if (seq !== 0) {
        const at = row(db, seq);
        if (act === "ack") ack(db, { seq }, at.ack_token ?? "", now);
        else if (at.status === "delivering") {
          const chosen = OUTCOMES[outcome] ?? { kind: "released", error: "", exhausted: false };
          settle(
            db,
            { seq, attempt: at.attempt, lockToken: at.lock_token ?? "" },
            moveAfter(chosen, at, POLICY, now, 0),
            now,
            at.holder ?? "",
          );
        }
      }
    }
    expect(breaches(db, now)).toEqual([]);
    const { attempts, dead_letters_total: died, lag, status } = figures(db, now);
    const moves = db.query<Logged, []>("SELECT * FROM log").all();
    const ended = moves.filter(({ before }) => before === "delivering");
    const deaths = moves.filter(({ after }) => after === "dead_letter");
    expect(Object.fromEntries(attempts.map(({ kind, result, count }) => [`${kind} ${result}`, count]))).toEqual(
      tally(ended.map((logged) => `${logged.kind} ${isLost(logged) ? "lost" : shortReason(logged.reason)}`)),
    );
    expect(Object.fromEntries(died.map(({ kind, reason, count }) => [`${kind} ${reason}`, count]))).toEqual(
      tally(deaths.map(({ kind, reason }) => `${kind} ${shortReason(reason)}`)),
    );
    // Every claim has ended, once, or is under way.
    expect(attempts.reduce((sum, { count }) => sum + count, 0) + status.delivering).toBe(lag.count);
  }
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => {
      db.run("BEGIN");
      try {
        played(steps);
      } finally {
        db.run("ROLLBACK");
      }
    }),
    { numRuns: 150 },
  );
});

interface Logged {
  readonly kind: string;
  readonly before: Status;
  /** Null: the row was deleted. */
  readonly after: Status | null;
  readonly reason: string;
  readonly actor: string;
  readonly claimant: string;
}

/** Whether the runner of the attempt that ended here was gone, or lost its claim. */
function isLost({ after, reason, actor, claimant }: Logged): boolean {
  if (after === null || after === "delivering" || after === "expired") return true;
  return reason === "dispatch.dead_letter.max_attempts" && actor !== claimant;
}

function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
