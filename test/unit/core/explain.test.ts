import { expect, test } from "bun:test";
import { type Explainable, FREE, nextMove, type Situation } from "../../../src/core/explain.ts";

const NOW = 1_000_000;
const FRESH: Explainable = {
  status: "pending",
  attempt: 0,
  max_attempts: 8,
  next_attempt_at: NOW,
  ack_required: 0,
  expires_at: null,
  reason_code: "dispatch.pending.enqueued",
  last_error: null,
};
const FAILED = { ...FRESH, attempt: 2, reason_code: "dispatch.pending.retry_backoff", last_error: "exit 1" };
const SENT = { ...FRESH, attempt: 2, ack_required: 1, reason_code: "dispatch.delivered.transport_ok" };

test.each<[string, Explainable]>([
  ["due now", FRESH],
  ["due for 1m30s", { ...FRESH, next_attempt_at: NOW - 90 }],
  ["due in 2h", { ...FRESH, next_attempt_at: NOW + 7_200 }],
  ["again in 40s: exit 1", { ...FAILED, next_attempt_at: NOW + 40 }],
  ["again now: exit 1", { ...FAILED, next_attempt_at: NOW - 0.5 }],
  ["due for 1m30s: exit 1", { ...FAILED, next_attempt_at: NOW - 90 }],
  [`again in 40s: ${"é".repeat(200)} …`, { ...FAILED, next_attempt_at: NOW + 40, last_error: "é".repeat(2_000) }],
  [
    "max_attempts: exit 1: …",
    { ...FAILED, status: "dead_letter", reason_code: "dispatch.dead_letter.max_attempts", last_error: "exit 1:\nmore" },
  ],
  ["again in 40s unless acknowledged", { ...SENT, next_attempt_at: NOW + 40 }],
  ["due for 1m30s unless acknowledged", { ...SENT, next_attempt_at: NOW - 90 }],
  ["dead letter in 40s unless acknowledged", { ...SENT, attempt: 8, next_attempt_at: NOW + 40 }],
  ["dead letter now: all attempts are used", { ...FAILED, attempt: 8 }],
  ["expires at the next tick", { ...FAILED, expires_at: NOW }],
  ["expires in 40s: exit 1", { ...FAILED, next_attempt_at: NOW + 40, expires_at: NOW + 40 }],
  ["running; lease ends in 15s", { ...FAILED, status: "delivering", next_attempt_at: NOW + 15 }],
  ["its runner vanished; again at the next tick", { ...FAILED, status: "delivering" }],
  ["its runner vanished; dead letter at the next tick", { ...FAILED, status: "delivering", attempt: 8 }],
  ["the command took it", { ...FRESH, status: "delivered", reason_code: "dispatch.delivered.transport_ok" }],
  ["acknowledged", { ...FRESH, status: "acked", reason_code: "dispatch.acked.consumer" }],
  ["max_attempts: exit 1", { ...FAILED, status: "dead_letter", reason_code: "dispatch.dead_letter.max_attempts" }],
  ["expired: exit 1", { ...FAILED, status: "expired", reason_code: "dispatch.expired.deadline" }],
  ["cancelled", { ...FAILED, status: "expired", reason_code: "dispatch.expired.cancelled" }],
])("nextMove() says %p", (sentence, row) => {
  expect(nextMove(row, NOW)).toBe(sentence);
});

test.each<[string, Explainable, Partial<Situation>]>([
  ["held", FRESH, { held_by: 1 }],
  ["held", { ...FAILED, next_attempt_at: NOW + 40 }, { held_by: 1, waits_for: 7, open_until: NOW + 90 }],
  ["waits for 417 of its key", FRESH, { waits_for: 417, open_until: NOW + 90 }],
  ["circuit open for 1m30s: exit 1", { ...FAILED, next_attempt_at: NOW + 40 }, { open_until: NOW + 90 }],
  ["again in 2m: exit 1", { ...FAILED, next_attempt_at: NOW + 120 }, { open_until: NOW + 90 }],
  ["due now", FRESH, { open_until: NOW }],
  // What ends needs no permission.
  ["expires at the next tick", { ...FRESH, expires_at: NOW }, { held_by: 1 }],
  ["dead letter now: all attempts are used", { ...FAILED, attempt: 8 }, { held_by: 1, waits_for: 7 }],
  ["running; lease ends in 15s", { ...FAILED, status: "delivering", next_attempt_at: NOW + 15 }, { held_by: 1 }],
  ["its runner vanished; held", { ...FAILED, status: "delivering" }, { held_by: 1 }],
  ["its runner vanished; dead letter at the next tick", { ...FAILED, status: "delivering", attempt: 8 }, { held_by: 1 }],
])("nextMove() says %p of %j in %j", (sentence, row, situation) => {
  expect(nextMove(row, NOW, { ...FREE, ...situation })).toBe(sentence);
});
