import { describe, expect, test } from "bun:test";
import { type Ending, verdict } from "../../../src/transport/verdict.ts";

const TERMS = { timeoutMs: 10_000, permanentExitCodes: [64, 77] };

function ending(change: Partial<Ending> = {}): Ending {
  return { exit: 0, signal: null, stopped: null, durationMs: 12, head: "h", tail: "t", stderr: "", lastLine: "", ...change };
}

describe("verdict()", () => {
  const table: readonly [string, Partial<Ending>, string, string | null][] = [
    ["exit 0", {}, "ok", null],
    ["exit 0 with stderr", { stderr: "warning" }, "ok", null],
    ["exit 3", { exit: 3 }, "failed", "exit 3"],
    ["exit 3 with stderr", { exit: 3, stderr: "no route" }, "failed", "no route"],
    ["a permanent exit code", { exit: 64 }, "rejected", "exit 64"],
    ["a permanent exit code with stderr", { exit: 77, stderr: "not for you" }, "rejected", "not for you"],
    ["a signal", { exit: null, signal: "SIGKILL" }, "failed", "signal SIGKILL"],
    ["a signal with stderr", { exit: null, signal: "SIGSEGV", stderr: "oops" }, "failed", "oops"],
    ["a timeout", { exit: null, signal: "SIGTERM", stopped: "timeout" }, "failed", "timed out after 10s"],
    ["a timeout answered with exit 0", { exit: 0, stopped: "timeout" }, "failed", "timed out after 10s"],
    ["a timeout answered with a permanent code", { exit: 64, stopped: "timeout" }, "failed", "timed out after 10s"],
    ["a timeout with stderr", { exit: 1, stopped: "timeout", stderr: "Terminated" }, "failed", "timed out after 10s"],
    ["a timeout that nothing could end", { exit: null, stopped: "timeout" }, "failed", "timed out after 10s"],
    ["a shutdown", { exit: 0, stopped: "kill" }, "failed", "stopped by the runner before it finished"],
  ];
  test.each(table)("of %s", (_, change, kind, error) => {
    const outcome = verdict(ending(change), TERMS);
    expect([outcome.kind, "error" in outcome ? outcome.error : null] as const).toEqual([kind as typeof outcome.kind, error]);
  });
  test("reports what was seen", () => {
    expect(verdict(ending({ exit: 3 }), TERMS)).toEqual({
      kind: "failed",
      report: { exit: 3, signal: null, durationMs: 12, head: "h", tail: "t" },
      error: "exit 3",
      retryAfterMs: null,
    });
  });
  test("cuts the error to 2,000 characters, never through a surrogate pair", () => {
    const outcome = verdict(ending({ exit: 1, stderr: `${"x".repeat(1_999)}😀` }), TERMS);
    expect(outcome.kind === "failed" && outcome.error).toBe("x".repeat(1_999));
  });
  test.each([
    ["retry-after: 90s", 90_000],
    ["Retry-After:1h30m", 5_400_000],
    ["retry-after: 0", 0],
    ["retry-after: 90", null],
    ["retry-after:", null],
    ["retry-after: soon", null],
    ["please retry-after: 90s", null],
    ["", null],
  ])("takes the wait that a failed command asks for: %p", (lastLine, retryAfterMs) => {
    for (const failure of [{ exit: 1 }, { exit: null, signal: "SIGTERM" }, { stopped: "timeout" }] as const)
      expect(verdict(ending({ ...failure, lastLine }), TERMS)).toMatchObject({ kind: "failed", retryAfterMs });
  });
  test("knows no wait for a command that succeeded or can never succeed", () => {
    for (const exit of [0, 64]) expect(verdict(ending({ exit, lastLine: "retry-after: 1s" }), TERMS)).not.toHaveProperty("retryAfterMs");
  });
});
