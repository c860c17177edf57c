import { describe, expect, test } from "bun:test";
import { createLog, type LogStyle } from "../../../src/cli/log.ts";
import type { Line } from "../../../src/cli/telling.ts";

/** 2026-01-01T00:00:00.250Z */
const NOW = 1_767_225_600.25;

function logged(format: LogStyle["format"], text: string, fields: Line["fields"] = {}): readonly string[] {
  const lines: string[] = [];
  createLog(
    { level: "info", format },
    () => NOW,
    (line) => lines.push(line),
  )({ level: "info", text, fields });
  return lines;
}

describe("the log", () => {
  test("takes its time from the clock that it is given", () => {
    expect(logged("text", "said")).toEqual(["2026-01-01T00:00:00.250Z info  said"]);
    expect(logged("plain", "said")).toEqual(["outbox: said"]);
  });

  test("is valid JSON for every character that it escapes, and reads back as it was", () => {
    for (let code = 0; code < 0x1_0000; code++) {
      if (code > 0x2100 && code < 0xd7ff) continue;
      const text = `a${String.fromCharCode(code)}b`;
      const [line = "", ...rest] = logged("json", text, { kind: text });
      expect(rest).toEqual([]);
      expect(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\ufeff]/.test(line)).toBeFalse();
      expect(JSON.parse(line)).toEqual({ time: "2026-01-01T00:00:00.250Z", level: "info", text, kind: text });
    }
  });
});
