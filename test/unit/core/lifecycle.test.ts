import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Claim, cutError, EDGES, moveAfter, type Policy, REASONS, shortReason } from "../../../src/core/lifecycle.ts";
import type { Outcome, Report } from "../../../src/core/outcome.ts";

const NOW = 1_767_225_600;
const REPORT: Report = { exit: 1, signal: null, durationMs: 12, head: "", tail: "" };
const POLICY: Policy = { backoff: { baseMs: 30_000, maxMs: 1_800_000, jitter: 0 }, onConfigError: "wait" };
const FAIL: Policy = { ...POLICY, onConfigError: "fail" };

const CLAIM: Claim = { attempt: 1, max_attempts: 3, ack_required: 0, expires_at: null, unresolved: 0 };
const LAST: Claim = { ...CLAIM, attempt: 3 };
const OK: Outcome = { kind: "ok", report: { ...REPORT, exit: 0 } };
const FAILED: Outcome = { kind: "failed", report: REPORT, error: "exit 1", retryAfterMs: null };
const ASKED: Outcome = { ...FAILED, retryAfterMs: 5_000 };
const REJECTED: Outcome = { kind: "rejected", report: REPORT, error: "exit 65" };
const TOO_LONG: Outcome = { kind: "rejected", report: null, error: "argument too long" };
const FAULT: Outcome = { kind: "fault", error: "no such command: tmux-ping" };
const UNRESOLVABLE: Outcome = { kind: "unresolvable", error: "no route for kind x" };
const RELEASED: Outcome = { kind: "released", error: "shutting down", exhausted: false };

/** What is expected: status, last word of the reason, attempt, wait in seconds, error, unresolved. */
type Row = readonly [string, Outcome, Claim, Policy, readonly [string, string, number, number, string | null, number]];
const TABLE: readonly Row[] = [
  ["success", OK, CLAIM, POLICY, ["delivered", "transport_ok", 1, 0, null, 0]],
  ["success on the last attempt", OK, LAST, POLICY, ["delivered", "transport_ok", 3, 0, null, 0]],
  ["success, ack asked for", OK, { ...CLAIM, ack_required: 1 }, POLICY, ["pending", "transport_ok", 1, 60, null, 0]],
  [
    "last success, ack asked for: still waits for it",
    OK,
    { ...LAST, ack_required: 1 },
    POLICY,
    ["pending", "transport_ok", 3, 240, null, 0],
  ],
  [
    "success, ack asked for, never past expiry",
    OK,
    { ...CLAIM, ack_required: 1, expires_at: NOW + 9 },
    POLICY,
    ["pending", "transport_ok", 1, 9, null, 0],
  ],
  ["success after the deadline", OK, { ...CLAIM, expires_at: NOW - 9 }, POLICY, ["delivered", "transport_ok", 1, 0, null, 0]],
  ["success after no route", OK, { ...CLAIM, unresolved: 1 }, POLICY, ["delivered", "transport_ok", 1, 0, null, 0]],
  ["failure", FAILED, CLAIM, POLICY, ["pending", "retry_backoff", 1, 60, "exit 1", 0]],
  ["second failure", FAILED, { ...CLAIM, attempt: 2 }, POLICY, ["pending", "retry_backoff", 2, 120, "exit 1", 0]],
  ["failure, ack asked for", FAILED, { ...CLAIM, ack_required: 1 }, POLICY, ["pending", "retry_backoff", 1, 60, "exit 1", 0]],
  ["failure, never past expiry", FAILED, { ...CLAIM, expires_at: NOW + 9 }, POLICY, ["pending", "retry_backoff", 1, 9, "exit 1", 0]],
  ["failure after the deadline", FAILED, { ...CLAIM, expires_at: NOW - 9 }, POLICY, ["pending", "retry_backoff", 1, -9, "exit 1", 0]],
  ["failure after no route", FAILED, { ...CLAIM, unresolved: 1 }, POLICY, ["pending", "retry_backoff", 1, 60, "exit 1", 0]],
  ["failure on the last attempt", FAILED, LAST, POLICY, ["dead_letter", "max_attempts", 3, 0, "exit 1", 0]],
  ["failure beyond the last attempt", FAILED, { ...LAST, attempt: 4 }, POLICY, ["dead_letter", "max_attempts", 4, 0, "exit 1", 0]],
  ["the wait that the command asked for", ASKED, CLAIM, POLICY, ["pending", "retry_backoff", 1, 5, "exit 1", 0]],
  ["a wait of 0", { ...FAILED, retryAfterMs: 0 }, CLAIM, POLICY, ["pending", "retry_backoff", 1, 0, "exit 1", 0]],
  [
    "a wait of a week is one of a day",
    { ...FAILED, retryAfterMs: 604_800_000 },
    CLAIM,
    POLICY,
    ["pending", "retry_backoff", 1, 86_400, "exit 1", 0],
  ],
  [
    "the wait asked for, never past expiry",
    ASKED,
    { ...CLAIM, expires_at: NOW + 2 },
    POLICY,
    ["pending", "retry_backoff", 1, 2, "exit 1", 0],
  ],
  ["a wait asked for on the last attempt", ASKED, LAST, POLICY, ["dead_letter", "max_attempts", 3, 0, "exit 1", 0]],
  ["a permanent exit code", REJECTED, CLAIM, POLICY, ["dead_letter", "rejected", 1, 0, "exit 65", 0]],
  ["a permanent exit code on the last attempt", REJECTED, LAST, POLICY, ["dead_letter", "rejected", 3, 0, "exit 65", 0]],
  ["an argv that can never run", TOO_LONG, { ...CLAIM, unresolved: 1 }, POLICY, ["dead_letter", "rejected", 1, 0, "argument too long", 1]],
  ["a fault that waits", FAULT, CLAIM, POLICY, ["pending", "config_fault", 0, 30, FAULT.error, 0]],
  ["a fault that waits on the last attempt", FAULT, LAST, POLICY, ["pending", "config_fault", 2, 30, FAULT.error, 0]],
  [
    "a fault that waits, never past expiry",
    FAULT,
    { ...CLAIM, expires_at: NOW + 9 },
    POLICY,
    ["pending", "config_fault", 0, 9, FAULT.error, 0],
  ],
  ["a fault that counts", FAULT, CLAIM, FAIL, ["pending", "retry_backoff", 1, 60, FAULT.error, 0]],
  ["a fault that counts on the last attempt", FAULT, LAST, FAIL, ["dead_letter", "max_attempts", 3, 0, FAULT.error, 0]],
  [
    "a fault that counts keeps the count of no routes",
    FAULT,
    { ...CLAIM, unresolved: 1 },
    FAIL,
    ["pending", "retry_backoff", 1, 60, FAULT.error, 1],
  ],
  ["no route", UNRESOLVABLE, CLAIM, POLICY, ["pending", "retry_backoff", 1, 60, UNRESOLVABLE.error, 1]],
  [
    "no route for the second time",
    UNRESOLVABLE,
    { ...CLAIM, attempt: 2, unresolved: 1 },
    POLICY,
    ["dead_letter", "unresolvable", 2, 0, UNRESOLVABLE.error, 2],
  ],
  [
    "no route with one attempt",
    UNRESOLVABLE,
    { ...CLAIM, max_attempts: 1 },
    POLICY,
    ["dead_letter", "unresolvable", 1, 0, UNRESOLVABLE.error, 1],
  ],
  ["released", RELEASED, CLAIM, POLICY, ["pending", "released", 0, 0, null, 0]],
  ["released on the last attempt", RELEASED, LAST, POLICY, ["pending", "released", 2, 0, null, 0]],
  ["released keeps the count of no routes", RELEASED, { ...CLAIM, unresolved: 1 }, FAIL, ["pending", "released", 0, 0, null, 1]],
  ["released after the deadline", RELEASED, { ...CLAIM, expires_at: NOW - 9 }, POLICY, ["pending", "released", 0, -9, null, 0]],
];

describe("moveAfter()", () => {
  test.each(TABLE)("%s", (_, outcome, claim, policy, [to, reason, attempt, waitS, lastError, unresolved]) => {
    const move = moveAfter(outcome, claim, policy, NOW, 0.5);
    expect([move.to, shortReason(move.reason), move.attempt, move.nextAttemptAt - NOW, move.lastError, move.unresolved]).toEqual([
      to,
      reason,
      attempt,
      waitS,
      lastError,
      unresolved,
    ]);
    expect(move.report).toBe("report" in outcome ? outcome.report : null);
  });

  test.each([
    [OK, CLAIM, POLICY, "attempt 1: the command took it"],
    [OK, { ...CLAIM, ack_required: 1 }, POLICY, "attempt 1: the command took it; waits 1m for the acknowledgement"],
    [FAILED, CLAIM, POLICY, "attempt 1 of 3 failed; again in 1m"],
    [ASKED, CLAIM, POLICY, "attempt 1 of 3 failed; again in 5s, as the command asked"],
    [FAILED, LAST, POLICY, "attempt 3 of 3 failed"],
    [REJECTED, CLAIM, POLICY, "can never succeed"],
    [FAULT, CLAIM, POLICY, "configuration: no such command: tmux-ping"],
    [UNRESOLVABLE, { ...CLAIM, unresolved: 1 }, POLICY, "no route for its kind"],
    [RELEASED, CLAIM, POLICY, "shutting down"],
  ] as const)("says why, for %#", (outcome, claim, policy, summary) => {
    expect(moveAfter(outcome, claim, policy, NOW, 0.5).summary).toBe(summary);
  });

  const outcomes = fc.constantFrom(OK, FAILED, ASKED, REJECTED, TOO_LONG, FAULT, UNRESOLVABLE, RELEASED);
  const claims: fc.Arbitrary<Claim> = fc.record({
    attempt: fc.integer({ min: 1, max: 5_000 }),
    max_attempts: fc.integer({ min: 1, max: 5_000 }),
    ack_required: fc.constantFrom(0, 1),
    expires_at: fc.option(fc.double({ min: NOW - 100, max: NOW + 1e6, noNaN: true })),
    unresolved: fc.integer({ min: 0, max: 3 }),
  });
  const policies: fc.Arbitrary<Policy> = fc.record({
    backoff: fc.record({
      baseMs: fc.integer({ min: 0, max: 86_400_000 }),
      maxMs: fc.integer({ min: 0, max: 86_400_000 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    onConfigError: fc.constantFrom("wait", "fail"),
  });

  test("always takes an edge of the table, with the arithmetic that the database checks", () => {
    fc.assert(
      fc.property(
        outcomes,
        claims,
        policies,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (outcome, claim, policy, random) => {
          const move = moveAfter(outcome, claim, policy, NOW, random);
          expect(
            EDGES.some(
              (edge) => edge.from === "delivering" && edge.to === move.to && edge.reason === move.reason && edge.by === "scheduler",
            ),
          ).toBe(true);
          const givenBack = move.reason === "dispatch.pending.released" || move.reason === "dispatch.pending.config_fault";
          expect(move.attempt).toBe(givenBack ? claim.attempt - 1 : claim.attempt);
          expect(Number.isFinite(move.nextAttemptAt)).toBe(true);
          if (move.to === "pending" && claim.expires_at !== null) expect(move.nextAttemptAt).toBeLessThanOrEqual(claim.expires_at);
          if (move.reason === "dispatch.delivered.transport_ok") expect(move.to).toBe(claim.ack_required === 1 ? "pending" : "delivered");
          if (move.reason === "dispatch.pending.retry_backoff") expect(claim.attempt).toBeLessThan(claim.max_attempts);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

test("cutError() keeps 2,000 characters and no half of one", () => {
  expect(cutError("x".repeat(3_000))).toHaveLength(2_000);
  expect(cutError(`${"x".repeat(1_999)}😀`)).toBe("x".repeat(1_999));
  expect(cutError(`${"x".repeat(1_998)}😀`)).toBe(`${"x".repeat(1_998)}😀`);
  expect(cutError("")).toBe("");
});

test("EDGES names no move twice, and no way out of delivered and acked", () => {
  const moves = EDGES.map((edge) => `${edge.from} ${edge.to} ${edge.reason}`);
  expect(new Set(moves).size).toBe(moves.length);
  expect(EDGES.map((edge): string | null => edge.from)).not.toContain("delivered");
  expect(EDGES.map((edge): string | null => edge.from)).not.toContain("acked");
  expect(EDGES.filter((edge) => edge.from === null)).toHaveLength(1);
});

test("every reason says its status first, but for the send that waits for its acknowledgement", () => {
  for (const edge of EDGES)
    if (!(edge.from === "delivering" && edge.to === "pending" && edge.reason === "dispatch.delivered.transport_ok"))
      expect(edge.reason.split(".").slice(0, 2)).toEqual(["dispatch", edge.to]);
  expect(REASONS.map(shortReason)).toEqual(REASONS.map((reason) => reason.split(".")[2] ?? ""));
});
