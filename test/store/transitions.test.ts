import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { type Move, moveAfter } from "../../src/core/lifecycle.ts";
import type { Outcome, Report } from "../../src/core/outcome.ts";
import { claimNext } from "../../src/store/claim.ts";
import { ack, settle } from "../../src/store/transitions.ts";
import { count, enter, memory, POLICY, row, T0, take, terms } from "../fixtures/world.ts";

const REPORT: Report = { exit: 0, signal: null, durationMs: 12, head: "said", tail: "" };
const OK: Outcome = { kind: "ok", report: REPORT };
const FAILED: Outcome = { kind: "failed", report: { ...REPORT, exit: 3 }, error: "exit 3", retryAfterMs: null };

function claimed(db: Database, now: number): Dispatch {
  const got = take(db, now);
  if (got?.status !== "delivering") throw new Error(`claimed nothing: ${got?.status}`);
  return got;
}

function finish(db: Database, claim: Dispatch, outcome: Outcome, now: number): { readonly result: string; readonly move: Move } {
  const move = moveAfter(outcome, claim, POLICY, now, 0.5);
  const held = { seq: claim.seq, attempt: claim.attempt, lockToken: claim.lock_token ?? "" };
  return { result: settle(db, held, move, now, "desk 1 1"), move };
}

/** Claims and fails `times` times; the row is pending again, and due at the time that is returned. */
function failed(db: Database, times: number): number {
  let now = T0;
  for (let n = 0; n < times; n++) now = finish(db, claimed(db, now), FAILED, now).move.nextAttemptAt;
  return now;
}

describe("the claim", () => {
  test("claims a due row: attempt, lease, token and holder, and tells it", () => {
    const db = memory();
    const { id } = enter(db);
    const claim = take(db, T0 + 1);
    expect(claim).toMatchObject({
      id,
      status: "delivering",
      attempt: 1,
      next_attempt_at: T0 + 16,
      holder: "desk 1 1",
      lock_token: expect.stringMatching(/^f[0-9a-f]{31}$/),
      updated_at: T0 + 1,
      reason_code: "dispatch.delivering.attempt",
      reason_summary: "attempt 1 of 8",
      source: "scheduler",
      actor: "desk 1 1",
      metadata: '{"attempt":1}',
    });
    expect(row(db, 1)).toEqual(claim as Dispatch);
    expect(count(db, "status_transitions")).toBe(2);
  });

  test("takes nothing from an empty table", () => expect(take(memory(), T0)).toBeNull());

  test("skips a dispatch that is not yet due", () => {
    const db = memory();
    enter(db, { not_before: T0 + 5 });
    expect(take(db, T0 + 4.999)).toBeNull();
    expect(take(db, T0 + 5)).toMatchObject({ status: "delivering" });
  });

  test("skips a delivering row whose lease still runs and takes it once the lease is over, with a new token", () => {
    const db = memory();
    enter(db);
    const first = claimed(db, T0);
    expect(take(db, T0 + 14.999)).toBeNull();
    const second = take(db, T0 + 15, { holder: "desk 2 2" });
    expect(second).toMatchObject({
      status: "delivering",
      attempt: 2,
      holder: "desk 2 2",
      next_attempt_at: T0 + 30,
      reason_summary: "attempt 2 of 8; the runner of attempt 1 vanished",
    });
    expect(second?.lock_token).not.toBe(first.lock_token);
  });

  test("takes the row that is due longest, of several the one that came first", () => {
    const db = memory();
    enter(db, { not_before: T0 + 3 });
    enter(db, { not_before: T0 + 1 });
    enter(db, { not_before: T0 + 1 });
    expect([1, 2, 3].map(() => take(db, T0 + 3)?.seq)).toEqual([2, 3, 1]);
  });

  test("takes a stale claim and a due row in the order in which they came due", () => {
    const db = memory();
    enter(db);
    claimed(db, T0); // lease to T0 + 15
    enter(db, { not_before: T0 + 14 });
    enter(db, { not_before: T0 + 16 });
    expect([1, 2, 3].map(() => take(db, T0 + 20)?.seq)).toEqual([2, 1, 3]);
  });

  test("ends a pending row at its expiry, before everything else", () => {
    const db = memory();
    enter(db, { expires_at: T0 + 5, max_attempts: 1, ack_required: true });
    expect(finish(db, claimed(db, T0), OK, T0 + 1).move.nextAttemptAt).toBe(T0 + 5);
    expect(take(db, T0 + 5)).toMatchObject({
      status: "expired",
      reason_code: "dispatch.expired.deadline",
      reason_summary: "its time was over",
      attempt: 1,
      lock_token: null,
      holder: null,
      next_attempt_at: T0 + 5,
    });
  });

  test("claims a row in the last instant before its expiry", () => {
    const db = memory();
    enter(db, { expires_at: T0 + 5 });
    expect(take(db, T0 + 4.999)).toMatchObject({ status: "delivering" });
  });

  test("ends a stale claim at its expiry, but only after its lease", () => {
    const db = memory();
    enter(db, { expires_at: T0 + 5 });
    claimed(db, T0);
    expect(take(db, T0 + 14)).toBeNull();
    expect(take(db, T0 + 15)).toMatchObject({
      status: "expired",
      reason_code: "dispatch.expired.deadline",
      reason_summary: "its time was over; the runner of attempt 1 vanished",
      attempt: 1,
      last_error: null,
    });
  });

  test("ends a stale claim of the last attempt and says that the runner vanished", () => {
    const db = memory();
    enter(db, { max_attempts: 1 });
    claimed(db, T0);
    expect(take(db, T0 + 15)).toMatchObject({
      status: "dead_letter",
      reason_code: "dispatch.dead_letter.max_attempts",
      reason_summary: "the runner of attempt 1 of 1 vanished",
      last_error: "the runner vanished during attempt 1",
      attempt: 1,
      lock_token: null,
      metadata: '{"attempt":1}',
    });
  });

  test("ends a sent row whose acknowledgement did not come", () => {
    const db = memory();
    enter(db, { max_attempts: 1, ack_required: true });
    const { move } = finish(db, claimed(db, T0), OK, T0 + 1);
    expect(take(db, move.nextAttemptAt - 0.001)).toBeNull();
    expect(take(db, move.nextAttemptAt)).toMatchObject({
      status: "dead_letter",
      reason_code: "dispatch.dead_letter.ack_timeout",
      reason_summary: "sent, 1 of 1 attempts used, no acknowledgement came",
      attempt: 1,
    });
  });

  test("ends a pending row without attempts left, which only a change by hand makes", () => {
    const db = memory();
    enter(db);
    const due = failed(db, 2);
    db.run("UPDATE dispatch_outbox SET max_attempts = 2");
    expect(take(db, due)).toMatchObject({
      status: "dead_letter",
      reason_code: "dispatch.dead_letter.max_attempts",
      attempt: 2,
      last_error: "exit 3",
    });
  });

  test("a message that kills its runner every time ends after max_attempts", () => {
    const db = memory();
    enter(db, { max_attempts: 3 });
    const seen = [0, 1, 2, 3, 4].map((n) => take(db, T0 + n * 15)?.status ?? null);
    expect(seen).toEqual(["delivering", "delivering", "delivering", "dead_letter", null]);
  });

  test("gives each kind its own lease, the others the common one", () => {
    const db = memory();
    for (const kind of ["slow", "quick", "other", '"ü\\', "__proto__", "constructor"]) enter(db, { kind });
    const kinds = new Map([
      ["slow", 600],
      ["quick", 0.5],
      ['"ü\\', 7],
      ["__proto__", 8],
    ]);
    const ends = Array.from({ length: 6 }, () => take(db, T0, { kinds })?.next_attempt_at);
    expect(ends).toEqual([T0 + 600, T0 + 0.5, T0 + 15, T0 + 7, T0 + 8, T0 + 15]);
  });

  test("steps over kinds that cannot be claimed, but ends their rows", () => {
    const db = memory();
    enter(db, { kind: "faulty", expires_at: T0 + 10 });
    enter(db, { kind: "fine" });
    const terms = { kinds: new Map([["faulty", null]]) };
    expect(take(db, T0, terms)).toMatchObject({ kind: "fine", status: "delivering" });
    expect(take(db, T0, terms)).toBeNull();
    expect(take(db, T0 + 10, terms)).toMatchObject({ kind: "faulty", status: "expired", attempt: 0 });
  });

  test("without a template for the other kinds claims only those that have one", () => {
    const db = memory();
    enter(db, { kind: "unknown" });
    enter(db, { kind: "known" });
    enter(db, { kind: "unknown", expires_at: T0 - 1 });
    const terms = { kinds: new Map([["known", 15]]), fallbackLeaseS: null };
    expect([1, 2, 3].map(() => take(db, T0, terms)?.status ?? null)).toEqual(["expired", "delivering", null]);
    expect(row(db, 2).status).toBe("delivering");
  });

  test("leaves what came due after dueBy, so that a drain ends", () => {
    const db = memory();
    enter(db);
    enter(db, { not_before: T0 + 5 });
    const until = { dueBy: T0 + 4 };
    expect([take(db, T0 + 10, until)?.seq, take(db, T0 + 10, until)]).toEqual([1, null]);
    expect(take(db, T0 + 10, { dueBy: T0 + 99 })?.seq).toBe(2);
  });

  test("a dueBy in the future makes nothing due", () => {
    const db = memory();
    enter(db, { not_before: T0 + 5 });
    expect(take(db, T0, { dueBy: T0 + 99 })).toBeNull();
  });

  test("takes no row that its runner has in hand, whatever its lease", () => {
    const db = memory();
    enter(db, { max_attempts: 1 });
    enter(db, { not_before: T0 + 20 });
    claimed(db, T0);
    expect(take(db, T0 + 60, { inHand: [1, 99] })?.seq).toBe(2);
    expect(take(db, T0 + 60, { inHand: [1, 2] })).toBeNull();
    expect(take(db, T0 + 60, { inHand: [2] })).toMatchObject({ seq: 1, status: "dead_letter" });
  });

  test("takes no row with an outcome of its own", () => {
    const db = memory();
    for (let n = 0; n < 4; n++) enter(db, { max_attempts: 1, ack_required: n === 3 });
    finish(db, claimed(db, T0), OK, T0);
    finish(db, claimed(db, T0), FAILED, T0);
    db.run("UPDATE dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled' WHERE seq = 3");
    ack(db, { seq: 4 }, row(db, 4).ack_token ?? "", T0);
    expect(db.query("SELECT status FROM dispatch_outbox ORDER BY seq").values().flat()).toEqual([
      "delivered",
      "dead_letter",
      "expired",
      "acked",
    ]);
    expect(take(db, T0 + 1e9)).toBeNull();
  });

  test("refuses the token of the claim that it takes over", () => {
    const db = memory();
    enter(db);
    const { lock_token } = claimed(db, T0);
    expect(() => claimNext(db, terms(T0 + 15), lock_token ?? "")).toThrow("a claim needs a new lock token");
  });
});

describe("settle()", () => {
  test("writes what the command came to, on the row and in the history", () => {
    const db = memory();
    enter(db);
    expect(finish(db, claimed(db, T0), FAILED, T0 + 2).result).toBe("applied");
    const metadata = '{"attempt":1,"exit":3,"signal":null,"duration_ms":12,"head":"said","tail":""}';
    expect(row(db, 1)).toMatchObject({
      status: "pending",
      attempt: 1,
      next_attempt_at: T0 + 62,
      last_error: "exit 3",
      lock_token: null,
      holder: null,
      updated_at: T0 + 2,
      reason_code: "dispatch.pending.retry_backoff",
      source: "scheduler",
      actor: "desk 1 1",
      metadata,
    });
    expect(db.query("SELECT previous_status, status, metadata FROM status_transitions ORDER BY id DESC").get()).toEqual({
      previous_status: "delivering",
      status: "pending",
      metadata,
    });
  });

  test("clears the error of the row after a success and keeps it in the history", () => {
    const db = memory();
    enter(db);
    finish(db, claimed(db, failed(db, 1)), OK, T0 + 61);
    expect(row(db, 1)).toMatchObject({ status: "delivered", attempt: 2, last_error: null });
    expect(count(db, "status_transitions WHERE reason_summary LIKE '%failed%'")).toBe(1);
  });

  test.each([
    [{ kind: "ok", report: REPORT }, false, "delivered", 1],
    [{ kind: "ok", report: REPORT }, true, "pending", 1],
    [FAILED, false, "pending", 1],
    [{ kind: "rejected", report: null, error: "too long" }, false, "dead_letter", 1],
    [{ kind: "fault", error: "no such command" }, false, "pending", 0],
    [{ kind: "released", error: "shutting down", exhausted: false }, false, "pending", 0],
    [{ kind: "unresolvable", error: "no route" }, false, "pending", 1],
  ] as const)("the database accepts what follows from %p (ack %p): %s, attempt %p", (outcome, ackRequired, status, attempt) => {
    const db = memory();
    enter(db, { ack_required: ackRequired });
    expect(finish(db, claimed(db, T0), outcome, T0 + 1).result).toBe("applied");
    expect(row(db, 1)).toMatchObject({ status, attempt });
  });

  test("a lease that is over, but that nobody took over, still settles", () => {
    const db = memory();
    enter(db);
    expect(finish(db, claimed(db, T0), OK, T0 + 1_000).result).toBe("applied");
    expect(row(db, 1).status).toBe("delivered");
  });

  test("a success after the deadline counts when the claim came before it", () => {
    const db = memory();
    enter(db, { expires_at: T0 + 1 });
    expect(finish(db, claimed(db, T0), OK, T0 + 5).result).toBe("applied");
    expect(row(db, 1).status).toBe("delivered");
  });

  test("a runner that lost its token changes nothing", () => {
    const db = memory();
    enter(db);
    const late = claimed(db, T0);
    claimed(db, T0 + 15);
    const before = [row(db, 1), count(db, "status_transitions")];
    for (const outcome of [OK, FAILED]) expect(finish(db, late, outcome, T0 + 16).result).toBe("lost");
    expect([row(db, 1), count(db, "status_transitions")]).toEqual(before);
  });

  test("a second settle of one claim is lost", () => {
    const db = memory();
    enter(db);
    const claim = claimed(db, T0);
    finish(db, claim, FAILED, T0 + 1);
    expect(finish(db, claim, OK, T0 + 1).result).toBe("lost");
    expect(row(db, 1).status).toBe("pending");
  });

  test("a row that was purged meanwhile is lost", () => {
    const db = memory();
    enter(db);
    const claim = claimed(db, T0);
    db.run("DELETE FROM dispatch_outbox");
    expect(finish(db, claim, OK, T0 + 1).result).toBe("lost");
  });

  test("says so when the consumer was faster", () => {
    const db = memory();
    enter(db, { ack_required: true });
    const claim = claimed(db, T0);
    expect(ack(db, { id: claim.id }, claim.ack_token ?? "", T0 + 1)).toBe("acked");
    expect(finish(db, claim, OK, T0 + 2).result).toBe("acked");
    expect(row(db, 1)).toMatchObject({ status: "acked", updated_at: T0 + 1 });
  });
});

describe("ack()", () => {
  function sent(db: Database): Dispatch {
    enter(db, { ack_required: true });
    finish(db, claimed(db, T0), OK, T0 + 1);
    return row(db, 1);
  }

  test("records the acknowledgement of a sent dispatch", () => {
    const db = memory();
    const { id, ack_token } = sent(db);
    expect(ack(db, { id }, ack_token ?? "", T0 + 2)).toBe("acked");
    expect(row(db, 1)).toMatchObject({
      status: "acked",
      reason_code: "dispatch.acked.consumer",
      source: "consumer",
      updated_at: T0 + 2,
      attempt: 1,
      metadata: '{"attempt":1}',
    });
  });

  test("takes the number too, and a row whose command still runs", () => {
    const db = memory();
    enter(db, { ack_required: true });
    const { ack_token } = claimed(db, T0);
    expect(ack(db, { seq: 1 }, ack_token ?? "", T0 + 2)).toBe("acked");
    expect(row(db, 1)).toMatchObject({ status: "acked", lock_token: null, holder: null });
  });

  test("takes a row that was never sent: whoever has the token has the message", () => {
    const db = memory();
    const { id, ack_token } = enter(db, { ack_required: true });
    expect(ack(db, { id }, ack_token ?? "", T0)).toBe("acked");
  });

  test("answers a repetition with already_acked and changes nothing", () => {
    const db = memory();
    const { id, ack_token } = sent(db);
    ack(db, { id }, ack_token ?? "", T0 + 2);
    const before = [row(db, 1), count(db, "status_transitions")];
    expect(ack(db, { id }, ack_token ?? "", T0 + 3)).toBe("already_acked");
    expect([row(db, 1), count(db, "status_transitions")]).toEqual(before);
  });

  test.each(["", "f", "F".repeat(32), "0".repeat(32), "0".repeat(31), "0".repeat(33), "\uFFFD".repeat(32)])(
    "does not take %p for the token",
    (token) => {
      const db = memory();
      const { id, ack_token } = sent(db);
      expect(ack(db, { id }, token, T0 + 2)).toBe("mismatch");
      expect(ack(db, { id }, `${ack_token}${token}0`, T0 + 2)).toBe("mismatch");
      expect(row(db, 1).status).toBe("pending");
    },
  );

  test("a wrong token of an acked row is a mismatch", () => {
    const db = memory();
    const { id, ack_token } = sent(db);
    ack(db, { id }, ack_token ?? "", T0 + 2);
    expect(ack(db, { id }, "x", T0 + 3)).toBe("mismatch");
  });

  test.each(["dead_letter", "expired"] as const)("answers wrong_status for %s", (status) => {
    const db = memory();
    enter(db, { ack_required: true, max_attempts: 1, ...(status === "expired" ? { expires_at: T0 + 9 } : {}) });
    const { ack_token, id } = claimed(db, T0);
    expect(take(db, T0 + 15)?.status).toBe(status);
    expect(ack(db, { id }, ack_token ?? "", T0 + 16)).toBe("wrong_status");
  });

  test("answers not_found and not_requested", () => {
    const db = memory();
    const { id } = enter(db);
    expect(ack(db, { id: "0".repeat(32) }, "x", T0)).toBe("not_found");
    expect(ack(db, { seq: 2 }, "x", T0)).toBe("not_found");
    expect(ack(db, { id }, "x", T0)).toBe("not_requested");
  });
});
