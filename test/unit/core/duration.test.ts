import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatDuration, MAX_DURATION_MS, parseDuration, shortDuration } from "../../../src/core/duration.ts";
import { OutboxError } from "../../../src/core/errors.ts";

function refusal(text: string): string {
  try {
    return `accepted as ${parseDuration(text)}`;
  } catch (error) {
    if (error instanceof OutboxError && error.kind === "usage") return `${error.message}; ${error.hint}`;
    throw error;
  }
}

describe("parseDuration()", () => {
  test.each([
    ["0", 0],
    ["0s", 0],
    ["250ms", 250],
    ["90s", 90_000],
    ["15m", 900_000],
    ["1h30m", 5_400_000],
    ["1h30m15s250ms", 5_415_250],
    ["3d", 259_200_000],
    ["1.5h", 5_400_000],
    ["0.25s", 250],
    ["30m1h", 5_400_000],
    ["1m1m", 120_000],
    ["007s", 7_000],
    ["  10s ", 10_000],
    ["1.4ms", 1],
    ["36500d", MAX_DURATION_MS],
  ])("reads %p as %p ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

  const HINT = "write numbers with units ms, s, m, h or d, for example 1h30m";
  test.each([
    "",
    " ",
    "s",
    "ms",
    "1x",
    "1w",
    "1y",
    "-1s",
    "+1s",
    "1h 30m",
    "1 h",
    "1H",
    "1S",
    ".5s",
    "1.s",
    "1.5.5s",
    "1,5s",
    "1e3s",
    "0x1s",
    "1h30",
    "5m3",
    "Infinity",
    "NaN",
    "١s",
    "1µs",
    "1s\0",
    "1h-30m",
    "constructor",
  ])("refuses %p", (text) => {
    expect(refusal(text)).toBe(`"${text}" is not a duration; ${HINT}`);
  });

  test.each(["30", "1.5", " 7 ", "00", "0.0"])("refuses the bare number %p and says how it could be meant", (text) => {
    const number = text.trim();
    expect(refusal(text)).toBe(`"${text}" is a number without a unit; write ${number}s, ${number}m, ${number}h or ${number}d`);
  });

  test.each(["36501d", `${"9".repeat(400)}d`, "876001h", "36500d1ms"])("refuses %p as too long", (text) => {
    expect(refusal(text)).toBe(`"${text}" is longer than a hundred years; use a shorter duration`);
  });

  test("reads what formatDuration() writes as the same duration", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => expect(parseDuration(formatDuration(ms))).toBe(ms)));
  });

  test("answers a whole number of milliseconds or refuses, whatever it gets", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.]{1,4}(ms|s|m|h|d)?[0-9]{0,2}(ms|s|m|h|d)?$/)), (text) => {
        const answer = refusal(text);
        if (answer.startsWith("accepted")) expect(answer).toMatch(/^accepted as \d+$/);
      }),
    );
  });
});

test.each([
  [0, "0s"],
  [1, "1ms"],
  [999, "999ms"],
  [1_000, "1s"],
  [5_400_000, "1h30m"],
  [86_400_000, "1d"],
  [90_061_001, "1d1h1m1s1ms"],
  [-5, "0s"],
  [1.6, "2ms"],
])("formatDuration() writes %p ms as %p", (ms, text) => expect(formatDuration(ms)).toBe(text));

test.each([
  [0, "0ms"],
  [12.4, "12ms"],
  [999.4, "999ms"],
  [1_000, "1s"],
  [1_260, "1.2s"],
  [9_999, "9.9s"],
  [10_900, "10s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [61_000, "1m1s"],
  [5_461_000, "1h31m"],
  [7_200_000, "2h"],
  [90_000_000, "1d1h"],
  [31_536_000_000, "365d"],
  [-61_000, "1m1s"],
])("shortDuration() writes %p ms as %p", (ms, text) => expect(shortDuration(ms)).toBe(text));
