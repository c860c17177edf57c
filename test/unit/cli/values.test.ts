/** Values of flags that nobody meant: numbers, durations and times of every broken sort are usage errors of one sentence. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../../../src/cli/io.ts";
import { run } from "../../../src/cli/run.ts";
import { CONTROLS } from "../../../src/core/visible.ts";
import { entropy, handClock } from "../../fixtures/world.ts";

const home = mkdtempSync(join(tmpdir(), "outbox-values-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The program in this process, on a workstation without settings. */
async function outbox(...args: readonly string[]): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const io: Io = {
    env: { HOME: home },
    cwd: home,
    uid: process.getuid?.() ?? 0,
    clock: handClock(),
    entropy,
    zone: { utcOffsetS: () => 0 },
    out: (text) => void (said.stdout += text),
    err: (line) => void (said.stderr += `${line}\n`),
    stdin: async function* () {},
    terminal: () => ({ stdout: false, stderr: false, columns: null, color: false }),
    interrupts: () => ({
      stop: new AbortController().signal,
      now: new AbortController().signal,
      onHangup: () => undefined,
      onSignal: () => undefined,
    }),
  };
  return { code: await run(args, io), ...said };
}

const ENQUEUE = ["enqueue", "--kind", "k", "--to", "d"];
const RED = "\u001b[31mred\u001b]0;title\u0007\u009b2J";
const NUMBERS = [
  "-1",
  "+5",
  "1.5",
  "0x10",
  "0b1",
  "1e3",
  "1e309",
  "NaN",
  "Infinity",
  " 5",
  "5 ",
  "5\n",
  "\u0665",
  "\uff15",
  "5_0",
  "1,000",
  "null",
  "true",
  RED,
];

const WRONG: readonly (readonly [args: readonly string[], values: readonly string[]])[] = [
  [
    ["ls", "--limit"],
    [...NUMBERS, "999999999999", "9".repeat(5_000)],
  ],
  [
    [...ENQUEUE, "--max-attempts"],
    [...NUMBERS, "0", "-0", "00", "1000001"],
  ],
  [
    ["revive", "s", "--reset-epoch"],
    ["-1", "1e309", "NaN", "Infinity", " ", "0x10", "253402300800", "1.7.0", "now", RED],
  ],
  [
    [...ENQUEUE, "--delay"],
    [
      "5",
      "-5s",
      "+5s",
      "1.s",
      ".5s",
      "1e3s",
      "5S",
      "5sec",
      "5 s",
      "1s 2s",
      "s",
      "  ",
      "1h-30m",
      "\u0665s",
      "5\u00b5s",
      "0x5s",
      "1m30",
      "5s\u200b",
      "36501d",
      `${"9".repeat(400)}d`,
      "1s".repeat(50_000).slice(1),
      RED,
    ],
  ],
  [
    [...ENQUEUE, "--not-before"],
    [
      "now",
      "tomorrow",
      "noon",
      "-1",
      "1e309",
      "1e10",
      "0x10",
      "NaN",
      "Infinity",
      "2030-01",
      "2030-13-01",
      "2030-02-30",
      "2029-02-29",
      "2030-00-00",
      "2030-01-01T25:00:00Z",
      "2030-01-01T23:59:61Z",
      "2030-01-01T00:00:00+25:00",
      "2030-01-01T00:00Z+1",
      "30-01-01",
      "01/02/2030",
      "10000-01-01",
      "24:00",
      "18:60",
      "6pm",
      "2030-01-01 18:00 Europe/Berlin",
      "2030-W01-1",
      "\u0662\u0660\u0663\u0660-01-01",
      "253402300800",
      "2h",
      RED,
      "9".repeat(5_000),
    ],
  ],
  [
    ["ls", "--since"],
    ["yesterday", "-2h", "2h ago", "1e309", "2030-02-30", RED],
  ],
  [
    ["ls", "--status"],
    ["PENDING", "p\u0435nding", "__proto__", "pending,dead_letter", RED],
  ],
  [
    ["ls", "--reason"],
    ["__proto__", "toString", "MAX_ATTEMPTS", RED],
  ],
  [
    [...ENQUEUE, "--on-duplicate"],
    ["KEEP", "__proto__", "replace", RED],
  ],
];

test.each(
  WRONG.flatMap(([args, values]) => values.map((value) => [args.at(-1) ?? "", JSON.stringify(value.slice(0, 40)), args, value] as const)),
)("%s %s is a usage error", async (_flag, _value, args, value) => {
  const came = await outbox(...args.slice(0, -1), `${args.at(-1)}=${value}`);
  expect(came).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/^outbox: [^\n]+; [^\n]+\n$/) as string });
  expect(came.stderr.trimEnd()).not.toMatch(CONTROLS);
  expect(came.stderr.length).toBeLessThan(4_096);
});

test.each([
  ["--delay", ["0", " 5s ", "36500d", "1h30m", "0.5ms"]],
  ["--not-before", ["0", "2030-01-01", "2030-12-31T23:59:59.999999999Z", "2028-02-29", "253402300799", "1767225600.5"]],
  ["--max-attempts", ["1", "1000000", "007"]],
] as const)("%s takes what is odd and has one meaning", async (flag, values) => {
  for (const value of values) expect(await outbox(...ENQUEUE, flag, value)).toMatchObject({ code: 0, stderr: "" });
});
