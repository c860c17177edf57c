import { describe, expect, test } from "bun:test";
import { type Exposed, prometheus } from "../../../src/cli/prometheus.ts";
import type { Figures } from "../../../src/store/store.ts";

const NOTHING: Figures = {
  depth: 0,
  oldest_due_age: 0,
  status: { pending: 0, delivering: 0, delivered: 0, acked: 0, dead_letter: 0, expired: 0 },
  open_circuits: 0,
  holds: 0,
  dead_letters: {},
  lag: {
    count: 0,
    sum: 0,
    buckets: [
      { le: 0.1, count: 0 },
      { le: 86_400, count: 0 },
    ],
  },
  attempts: [],
  dead_letters_total: [],
};
const exposed = (source: string, figures: Partial<Figures> = {}, circuits: readonly string[] = []): Exposed => ({
  source,
  figures: { ...NOTHING, ...figures },
  circuits: circuits.map((deliver_to) => ({ deliver_to })),
});
const attempts = (...kinds: readonly string[]): Partial<Figures> => ({
  attempts: kinds.map((kind) => ({ kind, result: "lost", count: 1 })),
});
const lines = (page: string, prefix: string): readonly string[] => page.split("\n").filter((line) => line.startsWith(prefix));

/** Reads a page as the format says: every line is a comment or a sample, the samples of a metric stand together below its type. */
function read(page: string): Map<string, number> {
  const samples = new Map<string, number>();
  const typed = new Set<string>();
  let current = "";
  for (const line of page.split("\n").slice(0, -1)) {
    const type = /^# TYPE (\w+) (gauge|counter|histogram)$/.exec(line);
    if (type !== null) {
      current = type[1] ?? "";
      expect(typed).not.toContain(current);
      typed.add(current);
    }
    if (line.startsWith("# ")) continue;
    const sample = /^(\w+)(\{(?:\w+="(?:[^"\\\n]|\\[\\n"])*",?)*\}) (\S+)$/.exec(line);
    expect(line).toBe(sample?.[0] ?? "");
    expect(sample?.[1]?.startsWith(current)).toBe(true);
    const key = `${sample?.[1]}${sample?.[2]}`;
    expect(samples.has(key)).toBe(false);
    samples.set(key, Number(sample?.[3]));
  }
  return samples;
}

describe("a page of metrics", () => {
  test("says 0 where there is nothing, and nothing of what nobody counted", () => {
    const samples = read(prometheus([exposed("default")]));
    expect([...samples.values()].every((value) => value === 0)).toBe(true);
    expect([...new Set([...samples.keys()].map((key) => key.replace(/\{.*/, "")))]).toEqual([
      "outbox_dispatches",
      "outbox_oldest_due_seconds",
      "outbox_dispatch_lag_seconds_bucket",
      "outbox_dispatch_lag_seconds_sum",
      "outbox_dispatch_lag_seconds_count",
      "outbox_circuits_open",
      "outbox_holds",
    ]);
    expect(prometheus([])).toBe("");
  });

  test("names each metric once, with the samples of all sources below it", () => {
    const page = prometheus([exposed("default", { oldest_due_age: 1.5, ...attempts("a") }), exposed("shop", attempts("a", "b"))]);
    read(page);
    expect(lines(page, "# HELP outbox_attempts_total")).toHaveLength(1);
    expect(lines(page, "outbox_oldest_due_seconds")).toEqual([
      'outbox_oldest_due_seconds{source="default"} 1.5',
      'outbox_oldest_due_seconds{source="shop"} 0',
    ]);
    expect(lines(page, "outbox_attempts_total")).toEqual([
      'outbox_attempts_total{source="default",kind="a",result="lost"} 1',
      'outbox_attempts_total{source="shop",kind="a",result="lost"} 1',
      'outbox_attempts_total{source="shop",kind="b",result="lost"} 1',
    ]);
  });

  test("tells the lag in cumulative buckets, the last without bound", () => {
    const lag = {
      count: 3,
      sum: 100_001.5,
      buckets: [
        { le: 0.1, count: 1 },
        { le: 86_400, count: 2 },
      ],
    };
    expect(lines(prometheus([exposed("default", { lag })]), "outbox_dispatch_lag")).toEqual([
      'outbox_dispatch_lag_seconds_bucket{source="default",le="0.1"} 1',
      'outbox_dispatch_lag_seconds_bucket{source="default",le="86400"} 2',
      'outbox_dispatch_lag_seconds_bucket{source="default",le="+Inf"} 3',
      'outbox_dispatch_lag_seconds_sum{source="default"} 100001.5',
      'outbox_dispatch_lag_seconds_count{source="default"} 3',
    ]);
  });

  test.each([
    ["a quote", 'a"b', 'a\\"b'],
    ["a backslash", "a\\b", "a\\\\b"],
    ["a newline", "a\nb", "a\\nb"],
    ["a backslash before an n", "a\\nb", "a\\\\nb"],
    ["a carriage return", "a\rb", "a\\\\x0db"],
    ["an escape", "\u001b[2J", "\\\\x1b[2J"],
    ["a NUL", "a\u0000", "a\\\\x00"],
    ["text turned around", "a\u202eb", "a\\\\u{202e}b"],
    ["half a character", "a\ud800", "a\\\\u{d800}"],
    ["braces and commas", 'x",y="z}{', 'x\\",y=\\"z}{'],
    ["nothing", "", ""],
  ])("holds %s in a kind and a destination", (_, text, written) => {
    const page = prometheus([exposed("default", attempts(text), [text])]);
    read(page);
    expect(lines(page, "outbox_attempts_total")).toEqual([`outbox_attempts_total{source="default",kind="${written}",result="lost"} 1`]);
    expect(lines(page, "outbox_circuit_open")).toEqual([`outbox_circuit_open{source="default",to="${written}"} 1`]);
  });

  test("adds up what looks alike once it is visible: the same labels twice would break it", () => {
    const page = prometheus([exposed("default", attempts("a\u0001", "a\\x01"), ["b\u0001", "b\\x01"])]);
    read(page);
    expect(lines(page, "outbox_attempts_total")).toEqual(['outbox_attempts_total{source="default",kind="a\\\\x01",result="lost"} 2']);
    expect(lines(page, "outbox_circuit_open")).toEqual(['outbox_circuit_open{source="default",to="b\\\\x01"} 1']);
  });
});
