import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  attemptsFor,
  type Backoff,
  backoffMs,
  DEFAULT_BACKOFF,
  DEFAULT_MAX_ATTEMPTS,
  MAX_ATTEMPTS_LIMIT,
} from "../../../src/core/backoff.ts";

const STILL: Backoff = { ...DEFAULT_BACKOFF, jitter: 0 };
const MINUTE = 60_000;
const DAY = 86_400_000;

describe("backoffMs()", () => {
  test("without jitter is the curve of ADR-0059", () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffMs(attempt, STILL, 0) / 1_000)).toEqual([
      60, 120, 240, 480, 960, 1_800, 1_800, 1_800,
    ]);
  });

  test.each([
    [0, 48],
    [0.5, 60],
    [0.999_999, 72],
  ])("spreads the first wait by a fifth (dice %p: %p s)", (random, seconds) => {
    expect(backoffMs(1, DEFAULT_BACKOFF, random) / 1_000).toBeCloseTo(seconds, 3);
  });

  test("applies the jitter before the cap: at the cap no wait is longer", () => {
    expect(backoffMs(6, DEFAULT_BACKOFF, 0.999)).toBe(1_800_000);
    expect(backoffMs(6, DEFAULT_BACKOFF, 0)).toBe(1_536_000);
    expect(backoffMs(8, DEFAULT_BACKOFF, 0)).toBe(1_800_000);
  });

  test.each([5_000, 1_024, 1e9, Number.MAX_SAFE_INTEGER])("stays finite at attempt %p", (attempt) => {
    expect(backoffMs(attempt, DEFAULT_BACKOFF, 0.5)).toBe(1_800_000);
    expect(backoffMs(attempt, { ...DEFAULT_BACKOFF, baseMs: 0 }, 0.5)).toBe(0);
  });

  test("with a base of 0 does not wait", () => {
    for (const attempt of [1, 2, 60, 61]) expect(backoffMs(attempt, { baseMs: 0, maxMs: 1_000, jitter: 0.2 }, 0.9)).toBe(0);
  });

  const backoffs: fc.Arbitrary<Backoff> = fc.record({
    baseMs: fc.integer({ min: 0, max: DAY }),
    maxMs: fc.integer({ min: 0, max: 30 * DAY }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test("lies within the jitter of the curve and never above the cap", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6_000 }), backoffs, dice, (attempt, backoff, random) => {
        const wait = backoffMs(attempt, backoff, random);
        const curve = backoff.baseMs * 2 ** Math.min(attempt, 60);
        expect(wait).toBeGreaterThanOrEqual(Math.min(curve * (1 - backoff.jitter), backoff.maxMs) - 1e-6);
        expect(wait).toBeLessThanOrEqual(Math.min(curve * (1 + backoff.jitter), backoff.maxMs));
      }),
    );
  });

  test("never shrinks from one attempt to the next, for the same dice", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), backoffs, dice, (attempt, backoff, random) => {
        expect(backoffMs(attempt + 1, backoff, random)).toBeGreaterThanOrEqual(backoffMs(attempt, backoff, random));
      }),
    );
  });
});

describe("attemptsFor()", () => {
  test.each([
    [0, 1],
    [1, 2],
    [60_000, 2],
    [60_001, 3],
    [91 * MINUTE, DEFAULT_MAX_ATTEMPTS], // 8 attempts are 91 minutes of failures
    [91 * MINUTE + 1, DEFAULT_MAX_ATTEMPTS + 1],
    [3 * DAY, 149],
  ])("%p ms of failures take %p attempts", (retryForMs, attempts) => {
    expect(attemptsFor(retryForMs, DEFAULT_BACKOFF)).toBe(attempts);
  });

  test("is the smallest number whose waits add up", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: DAY }),
        fc.record({ baseMs: fc.integer({ min: 50, max: 100_000 }), maxMs: fc.integer({ min: 1_000, max: DAY }), jitter: fc.constant(0.2) }),
        (retryForMs, backoff) => {
          const still = { ...backoff, jitter: 0 };
          const waited = (attempts: number): number => {
            let sum = 0;
            for (let n = 1; n < attempts; n++) sum += backoffMs(n, still, 0);
            return sum;
          };
          const attempts = attemptsFor(retryForMs, backoff);
          expect(waited(attempts)).toBeGreaterThanOrEqual(retryForMs);
          if (attempts > 1) expect(waited(attempts - 1)).toBeLessThan(retryForMs);
        },
      ),
      { numRuns: 50 },
    );
  });

  test.each([
    [{ ...STILL, baseMs: 0 }, "retry_for needs a backoff that waits"],
    [{ ...STILL, maxMs: 0 }, "retry_for needs a backoff that waits"],
    [{ ...STILL, maxMs: 1 }, `retry_for would take ${3 * DAY + 1} attempts`],
  ])("refuses a backoff that does not get there: %p", (backoff, message) => {
    expect(() => attemptsFor(3 * DAY, backoff)).toThrow(message);
  });

  test("allows up to the limit of attempts", () => {
    const second: Backoff = { baseMs: 1_000, maxMs: 1_000, jitter: 0 };
    expect(attemptsFor((MAX_ATTEMPTS_LIMIT - 1) * 1_000, second)).toBe(MAX_ATTEMPTS_LIMIT);
    expect(() => attemptsFor(MAX_ATTEMPTS_LIMIT * 1_000, second)).toThrow("attempts");
  });
});
