import { describe, expect, test } from "bun:test";
import { OutboxError } from "../../../src/core/errors.ts";
import type { Zone } from "../../../src/core/seams.ts";
import { formatTime, parseTime } from "../../../src/core/time.ts";

/** A zone by its offset from the beginning and its changes: [epoch seconds, offset from there on in hours]. */
function zone(firstHours: number, changes: readonly (readonly [at: number, hours: number])[]): Zone {
  return { utcOffsetS: (epochS) => changes.reduce((offset, [at, hours]) => (epochS >= at ? hours * 3_600 : offset), firstHours * 3_600) };
}

const utc = (text: string): number => Date.parse(text) / 1_000;
const UTC = zone(0, []);
const BERLIN = zone(1, [
  [utc("2026-03-29T01:00:00Z"), 2],
  [utc("2026-10-25T01:00:00Z"), 1],
]);
const NEW_YORK = zone(-5, [
  [utc("2026-03-08T07:00:00Z"), -4],
  [utc("2026-11-01T06:00:00Z"), -5],
]);
const TOKYO = zone(9, []);
const NOW = utc("2026-06-15T10:20:30Z");

const at = (text: string, local: Zone = UTC, past = false): number => parseTime(text, { now: NOW, zone: local, past });
const refusal = (text: string, local: Zone = UTC, past = false): string => {
  try {
    return `accepted as ${at(text, local, past)}`;
  } catch (error) {
    if (error instanceof OutboxError && error.kind === "usage") return `${error.message}; ${error.hint}`;
    throw error;
  }
};

describe("parseTime()", () => {
  test.each([
    ["0", 0],
    ["1767225600", 1_767_225_600],
    ["1767225600.25", 1_767_225_600.25],
    ["253402300799", 253_402_300_799],
    ["2026-12-24T18:00:00Z", utc("2026-12-24T18:00:00Z")],
    ["2026-12-24t18:00:00z", utc("2026-12-24T18:00:00Z")],
    ["2026-12-24 18:00:00Z", utc("2026-12-24T18:00:00Z")],
    ["2026-12-24T18:00:00.5+01:00", utc("2026-12-24T17:00:00.5Z")],
    ["2026-12-24T18:00-03:30", utc("2026-12-24T21:30:00Z")],
    ["2026-12-24 18:00:00 +01:00", utc("2026-12-24T17:00:00Z")],
    ["2024-02-29T00:00:00Z", utc("2024-02-29T00:00:00Z")],
    ["1970-01-01T00:00:00Z", 0],
    ["9999-12-31T23:59:59Z", 253_402_300_799],
  ])("reads %p whatever the zone", (text, expected) => {
    for (const local of [UTC, BERLIN, NEW_YORK, TOKYO]) expect(at(text, local)).toBe(expected);
  });

  test.each([
    ["2026-12-24", BERLIN, "2026-12-23T23:00:00Z"],
    ["2026-12-24 18:00", BERLIN, "2026-12-24T17:00:00Z"],
    ["2026-12-24T18:00:30", BERLIN, "2026-12-24T17:00:30Z"],
    ["2026-07-01 18:00", BERLIN, "2026-07-01T16:00:00Z"],
    ["18:00", BERLIN, "2026-06-15T16:00:00Z"],
    ["18:00:05", NEW_YORK, "2026-06-15T22:00:05Z"],
    ["2026-12-24", NEW_YORK, "2026-12-24T05:00:00Z"],
    ["2026-12-24 18:00", TOKYO, "2026-12-24T09:00:00Z"],
  ])("reads %p in local time", (text, local, expected) => {
    expect(at(text, local)).toBe(utc(expected));
  });

  test("takes today from the local calendar, not from that of UTC", () => {
    const lateInUtc = utc("2026-06-15T20:00:00Z"); // already the 16th in Tokyo
    expect(parseTime("08:00", { now: lateInUtc, zone: TOKYO, past: false })).toBe(utc("2026-06-15T23:00:00Z"));
  });

  test("refuses a local time that the clock skips, naming both offsets", () => {
    expect(refusal("2026-03-29 02:30", BERLIN)).toBe(
      '"2026-03-29 02:30" does not exist in local time: the clock goes from +01:00 to +02:00; write 2026-03-29T02:30:00+01:00 or 2026-03-29T02:30:00+02:00',
    );
    expect(refusal("2026-03-08 02:30", NEW_YORK)).toContain("from -05:00 to -04:00");
  });

  test("refuses a local time that the clock shows twice, naming both offsets", () => {
    expect(refusal("2026-10-25 02:30", BERLIN)).toBe(
      '"2026-10-25 02:30" exists twice in local time: the clock goes from +02:00 to +01:00; write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00',
    );
    expect(refusal("2026-11-01 01:30", NEW_YORK)).toContain("from -04:00 to -05:00");
  });

  test("agrees with the clock at every quarter of an hour around every change", () => {
    for (const [local, changes] of [
      [BERLIN, ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]],
      [NEW_YORK, ["2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"]],
      [TOKYO, ["2026-03-29T01:00:00Z"]],
    ] as const) {
      for (const change of changes) {
        const shown = new Map<string, number[]>();
        for (let instant = utc(change) - 2 * 86_400; instant <= utc(change) + 2 * 86_400; instant += 900) {
          const wall = formatTime(instant, local).slice(0, 19);
          shown.set(wall, [...(shown.get(wall) ?? []), instant]);
        }
        for (const [wall, instants] of shown) {
          const [first, second] = instants;
          if (second === undefined) expect(at(wall, local)).toBe(first ?? Number.NaN);
          else expect(refusal(wall, local)).toContain("exists twice");
        }
      }
    }
  });

  test("reads a duration as that long ago, for the past only", () => {
    expect(at("2h", UTC, true)).toBe(NOW - 7_200);
    expect(at("1h30m", UTC, true)).toBe(NOW - 5_400);
    expect(refusal("2h")).toContain("is a duration, not a time");
  });

  test("refuses milliseconds and says what they are in seconds", () => {
    expect(refusal("1767225600000")).toContain("in seconds it is 1767225600");
  });

  test.each([
    "",
    " ",
    "tomorrow",
    "-1",
    "1e9",
    "0x10",
    "2026-13-01",
    "2026-00-10",
    "2026-02-29",
    "2026-04-31",
    "2026-1-1",
    "24:00",
    "18:60",
    "7:00",
    "18:00:60",
    "2026-12-24T",
    "2026-12-24T18",
    "2026-12-24 18:00 Z junk",
    "2026-12-24T18:00:00+24:00",
    "2026-12-24T18:00:00+01:60",
    "10000-01-01",
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "253402300800",
    "NaN",
    "Infinity",
    "2h30",
  ])("refuses %p", (text) => {
    for (const past of [false, true]) expect(refusal(text, UTC, past)).not.toStartWith("accepted");
  });
});

describe("formatTime()", () => {
  test("writes local time and offset, to the second", () => {
    expect(formatTime(utc("2026-12-24T17:00:00.9Z"), BERLIN)).toBe("2026-12-24 18:00:00 +01:00");
    expect(formatTime(utc("2026-07-01T16:00:00Z"), NEW_YORK)).toBe("2026-07-01 12:00:00 -04:00");
    expect(formatTime(0, UTC)).toBe("1970-01-01 00:00:00 +00:00");
  });

  test("is read back by parseTime() as the same instant", () => {
    for (let instant = 0; instant < 253_402_300_799; instant += 86_399 * 997) {
      for (const local of [UTC, BERLIN, NEW_YORK, TOKYO]) expect(at(formatTime(instant, local))).toBe(instant);
    }
  });
});
