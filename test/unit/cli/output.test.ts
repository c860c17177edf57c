import { describe, expect, test } from "bun:test";
import { complaint, cut, escapeControls, jsonLine, relative, table } from "../../../src/cli/output.ts";
import { OutboxError } from "../../../src/core/errors.ts";

describe("escapeControls()", () => {
  test.each([
    ["plain, Grüße, 日本, 👩‍👩‍👧 and ~", "plain, Grüße, 日本, 👩‍👩‍👧 and ~"],
    ["a\u001b[2Jb", "a\\x1b[2Jb"],
    ["a\nb\tc\rd\0", "a\\x0ab\\x09c\\x0dd\\x00"],
    ["\u007f\u0080\u009b31m", "\\x7f\\x80\\x9b31m"],
    ["\u202eevil\u2066x\u2069", "\\u{202e}evil\\u{2066}x\\u{2069}"],
    ["a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"],
    ["\ud800x\udfff", "\\u{d800}x\\u{dfff}"],
  ])("of %j", (text, escaped) => {
    expect(escapeControls(text)).toBe(escaped);
  });

  test("leaves nothing that could move a cursor, for every code unit", () => {
    for (let code = 0; code < 0x10000; code++) {
      const escaped = escapeControls(String.fromCharCode(code));
      expect(escaped.isWellFormed() && !/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/.test(escaped)).toBeTrue();
    }
  });
});

describe("jsonLine()", () => {
  test("is one line that reads back as it was", () => {
    const value = { text: "a\nb\u009b\u2028\u202e\u001b\ud800" };
    const line = jsonLine(value);
    expect(line.slice(0, -1)).toMatch(/^[ -~]*$/);
    expect(JSON.parse(line)).toEqual(value);
  });
});

describe("complaint()", () => {
  test("says what and what to do", () => {
    expect(complaint(new OutboxError("no", "no database at x", "check --db"))).toBe("outbox: no database at x; check --db");
    expect(complaint(new OutboxError("no", "no database at x"))).toBe("outbox: no database at x");
  });

  test("is one line without escapes, also of a bug", () => {
    expect(complaint(new TypeError("x is\nnot \u001b[1ma function"))).toBe(
      "outbox: this should not happen: x is\\x0anot \\x1b[1ma function; please report it",
    );
  });
});

describe("table()", () => {
  const columns = [
    { title: "SEQ", right: true },
    { title: "TO", elastic: true },
    { title: "WHY", elastic: true },
  ] as const;
  const wide = [
    ["7", "日本日本日本日本日本", "because of everything"],
    ["1234", "me", "ok"],
  ];

  test("aligns numbers right and counts wide characters as two", () => {
    expect(table(columns, wide, { columns: null, color: false })).toBe(
      [" SEQ  TO                    WHY", "   7  日本日本日本日本日本  because of everything", "1234  me                    ok", ""].join(
        "\n",
      ),
    );
  });

  test("fits a terminal by cutting the widest elastic columns", () => {
    const lines = table(columns, wide, { columns: 30, color: false }).trimEnd().split("\n");
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(30);
    expect(lines[1]).toContain("…");
    expect(lines[2]).toBe("1234  me           ok");
  });

  test("is never cut off a terminal", () => {
    expect(table(columns, [["1", "x".repeat(5_000), "y"]], { columns: null, color: false })).toContain("x".repeat(5_000));
  });

  test("escapes its cells", () => {
    expect(table(columns, [["1", "a\nb", "\u001b[2J"]], { columns: null, color: false }).split("\n")).toHaveLength(3);
  });

  test("has a bold header only in colour", () => {
    expect(table(columns, [], { columns: 80, color: true })).toStartWith("\u001b[1mSEQ");
  });
});

test("cut() never cuts through a character", () => {
  expect(cut("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 4)).toBe("👩‍👩‍👧…");
  expect(cut("abcdef", 4)).toBe("abc…");
  expect(cut("abcd", 4)).toBe("abcd");
});

test("relative() says how far away an instant is", () => {
  expect(relative(190, 100)).toBe("in 1m30s");
  expect(relative(10, 100)).toBe("1m30s ago");
  expect(relative(100.2, 100)).toBe("now");
});
