import { describe, expect, test } from "bun:test";
import { type Counted, figuresTable, within } from "../../../src/cli/figures.ts";
import { passed } from "../../../src/cli/limits.ts";
import type { Figures } from "../../../src/store/store.ts";

const lag = (count: number, ...counts: readonly number[]): Figures["lag"] => ({
  count,
  sum: 0,
  buckets: [0.1, 5, 60].map((le, at) => ({ le, count: counts[at] ?? 0 })),
});
const EMPTY: Figures = {
  depth: 0,
  oldest_due_age: 0,
  status: { pending: 0, delivering: 0, delivered: 0, acked: 0, dead_letter: 0, expired: 0 },
  open_circuits: 0,
  holds: 0,
  dead_letters: {},
  lag: lag(0),
  attempts: [],
  dead_letters_total: [],
};
const counted = (source: string, figures: Partial<Figures> = {}, open = 0): Counted => ({
  source,
  path: `/${source}.db`,
  figures: { ...EMPTY, ...figures, open_circuits: open },
  circuits: Array.from({ length: Math.min(open, 100) }, (_, n) => ({
    deliver_to: `d${n}`,
    failures: n + 5,
    failed_at: 90,
    opened_at: 40,
    open_until: n === 0 ? 100 : 160,
  })),
});

describe("the table of figures", () => {
  test("is whole where there is nothing", () => {
    expect(figuresTable([counted("default")], 100, null)).toBe(
      `depth              0
oldest due         -
pending            0
delivering         0
delivered          0
acked              0
dead_letter        0
expired            0
half begin within  -
95% begin within   -
open circuits      0
holds              0
`,
    );
  });

  test("has a column for each source, and a line for each reason that one of them knows", () => {
    const dead = { status: { ...EMPTY.status, dead_letter: 3 }, dead_letters: { rejected: 1, max_attempts: 2 } };
    expect(
      figuresTable([counted("default", { ...dead, lag: lag(4, 2, 4, 4) }), counted("shop", { oldest_due_age: 90 }, 1)], 100, null),
    ).toBe(
      `SOURCE             default   shop
depth                    0      0
oldest due               -  1m30s
pending                  0      0
delivering               0      0
delivered                0      0
acked                    0      0
dead_letter              3      0
  max_attempts           2      0
  rejected               1      0
expired                  0      0
half begin within    100ms      -
95% begin within        5s      -
open circuits            0      1
holds                    0      0
shop: circuit open for 1m: d0 failed 5 times in a row, tries with one message at a time
`,
    );
  });

  test("is one for each source where the terminal is too narrow for all side by side", () => {
    const all = [counted("default", { depth: 7 }), counted("shop", {}, 1)];
    expect(figuresTable(all, 100, 32)).toBe(figuresTable(all, 100, null));
    expect(
      figuresTable(all, 100, 31)
        .split("\n")
        .filter((line) => /^(SOURCE|depth|$|shop)/.test(line)),
    ).toEqual([
      "SOURCE             default",
      "depth                    7",
      "",
      "SOURCE             shop",
      "depth                 0",
      "",
      "shop: circuit open for 1m: d0 failed 5 times in a row, tries with one message at a time",
      "",
    ]);
  });

  test("shortens what a destination is called, and nothing else", () => {
    const one = counted("default", {}, 1);
    const long = { ...one, circuits: one.circuits.map((circuit) => ({ ...circuit, deliver_to: "x".repeat(8_000) })) };
    expect(figuresTable([long], 100, null)).toMatch(
      /\ncircuit open for 1m: x{1500}… failed 5 times in a row, tries with one message at a time\n$/,
    );
  });

  test("names ten open circuits, and says how many more there are", () => {
    const lines = figuresTable([counted("default", {}, 1_234)], 100, null)
      .trimEnd()
      .split("\n");
    expect(lines.filter((line) => line.startsWith("circuit open for"))).toHaveLength(10);
    expect(lines.at(-2)).toBe("circuit open for 1m: d9 failed 14 times in a row, tries again in 1m");
    expect(lines.at(-1)).toBe("1224 more open circuits");
  });

  test.each([
    ["nothing was claimed", lag(0), 0.95, "-"],
    ["all were on time", lag(10, 10, 10, 10), 0.95, "100ms"],
    ["exactly the share kept it", lag(20, 19, 20, 20), 0.95, "100ms"],
    ["one less kept it", lag(20, 18, 20, 20), 0.95, "5s"],
    ["most were late beyond all bounds", lag(10, 1, 2, 3), 0.95, "over 1m"],
    ["half of one", lag(1, 0, 0, 1), 0.5, "1m"],
  ])("tells of the lag a bound: %s", (_, all, share, bound) => {
    expect(within(all, share)).toBe(bound);
  });
});

describe("a limit", () => {
  const figures: Figures = { ...EMPTY, depth: 3, oldest_due_age: 60, status: { ...EMPTY.status, dead_letter: 1 } };
  test("that is just reached is not passed", () => {
    expect(passed(figures, { ageMs: 60_000, dead: 1, pending: 3 })).toEqual([]);
    expect(passed(EMPTY, { ageMs: 0, dead: 0, pending: 0 })).toEqual([]);
  });

  test("that is passed is told, each in a line", () => {
    expect(passed(figures, { ageMs: 59_999, dead: 0, pending: 2 })).toEqual([
      "the oldest due message has waited for 1m, more than 59s999ms",
      "1 dead letter, more than 0",
      "3 unfinished messages, more than 2",
    ]);
    expect(passed(figures, {})).toEqual([]);
  });
});
