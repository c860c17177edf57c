import { describe, expect, test } from "bun:test";
import { OutboxError } from "../../../src/core/errors.ts";
import { checkRequest } from "../../../src/core/request.ts";
import { MAX_TIME } from "../../../src/core/time.ts";
import { DEFAULT_REVIVAL_TTL_S, revivalRequests, type RevivalTerms } from "../../../src/core/revival.ts";

const T = 1_767_225_600;
const TERMS: RevivalTerms = { resetEpoch: T, ttlS: DEFAULT_REVIVAL_TTL_S };

function refusal(seats: readonly string[], terms: RevivalTerms): string {
  try {
    revivalRequests(seats, terms);
  } catch (error) {
    if (error instanceof OutboxError && error.kind === "data") return error.message;
    throw error;
  }
  return "accepted";
}

describe("revivalRequests()", () => {
  test("asks for one ping a seat, in the order given, as ADR-0059 D6 has it", () => {
    expect(revivalRequests(["b", "a", "b"], TERMS).map((request) => request.dedup_key)).toEqual([
      "revival:b:1767225600",
      "revival:a:1767225600",
      "revival:b:1767225600",
    ]);
    expect(revivalRequests(["seat-1"], { ...TERMS, maxAttempts: 3, notBefore: T + 1 })).toEqual([
      {
        kind: "revival_ping",
        deliver_to: "seat-1",
        body: { reset_epoch: T },
        dedup_key: "revival:seat-1:1767225600",
        expires_at: T + 3_600,
        max_attempts: 3,
        not_before: T + 1,
      },
    ]);
    expect(revivalRequests([], TERMS)).toEqual([]);
  });

  test.each([
    [Number("1767225600.0"), "1767225600"],
    [1767225600.5, "1767225600.5"],
    [0.1, "0.1"],
    [0, "0"],
    [-0, "0"],
  ])("writes the reset %p in its shortest form, in key and body alike", (resetEpoch, text) => {
    const [request] = revivalRequests(["s"], { ...TERMS, resetEpoch }).map((asked) => checkRequest(asked));
    expect([request?.dedup_key, request?.body]).toEqual([`revival:s:${text}`, `{"reset_epoch":${text}}`]);
  });

  test("a reset of 0 never expires", () => {
    expect(checkRequest(revivalRequests(["s"], { ...TERMS, resetEpoch: 0 })[0] ?? { kind: "", deliver_to: "" }).expires_at).toBeNull();
  });

  test("an expiry that has passed already is asked for like any other", () => {
    expect(revivalRequests(["s"], { resetEpoch: 1, ttlS: 0 })[0]?.expires_at).toBe(1);
  });

  test("gives requests that can be stored, also at the end of time", () => {
    for (const resetEpoch of [0, 1, T, MAX_TIME])
      for (const ttlS of [0, 3_600, MAX_TIME])
        for (const request of revivalRequests(["s", "x".repeat(960)], { resetEpoch, ttlS }))
          expect(checkRequest(request).kind).toBe("revival_ping");
  });

  test.each([-1, Number.NaN, Infinity, MAX_TIME + 1])("refuses the reset %p", (resetEpoch) => {
    expect(refusal(["s"], { ...TERMS, resetEpoch })).toBe("reset_epoch is not a time in epoch seconds between 1970 and 9999");
  });

  test.each([-1, Number.NaN, Infinity])("refuses the ttl %p", (ttlS) => {
    expect(refusal(["s"], { ...TERMS, ttlS })).toBe("the ttl is not a number of seconds, 0 or more");
  });

  test.each([
    ["", "the seat is empty"],
    ["a\0", "the seat holds a NUL character"],
    ["\uD800", "the seat is not valid Unicode (a lone surrogate)"],
    ["x".repeat(961), "the seat has 961 bytes; the limit is 960"],
  ])("refuses the seat %p", (seat, said) => expect(refusal(["fine", seat], TERMS)).toBe(said));
});
