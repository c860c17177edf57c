import { describe, expect, test } from "bun:test";
import { createCapture } from "../../../src/transport/capture.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What is kept of these chunks of stdout. */
function kept(limit: number, ...chunks: readonly (string | Uint8Array)[]): readonly [string, string] {
  const capture = createCapture(limit);
  for (const chunk of chunks) capture.stdout(typeof chunk === "string" ? bytes(chunk) : chunk);
  const { head, tail } = capture.captured();
  return [head, tail];
}

describe("head and tail", () => {
  test.each([
    [8, ["abc"], ["abc", ""]],
    [8, ["abcdefgh"], ["abcdefgh", ""]],
    [8, ["abcde", "", "fgh"], ["abcdefgh", ""]],
    [8, ["abcdefghi"], ["abcd", "fghi"]],
    [8, ["abcdefghi", "jk"], ["abcd", "hijk"]],
    [8, "abcdefghijklmnopq".split(""), ["abcd", "nopq"]],
    [8, ["ab", "cdefghijklmnop", "q"], ["abcd", "nopq"]],
    [7, ["abcdefghi"], ["abcd", "ghi"]],
    [1, ["abc"], ["a", ""]],
    [0, ["abc"], ["", ""]],
    [8, [], ["", ""]],
  ] as const)("of %d bytes out of %p are %p", (limit, chunks, expected) => {
    expect(kept(limit, ...chunks)).toEqual(expected);
  });
  test("keep both streams in the order in which they arrived", () => {
    const capture = createCapture(100);
    capture.stdout(bytes("1"));
    capture.stderr(bytes("2"));
    capture.stdout(bytes("3"));
    expect(capture.captured().head).toBe("123");
  });
  test("are not cut inside a character", () => {
    expect(kept(12, "ab😀😀😀😀😀")).toEqual(["ab😀", "😀"]);
    expect(kept(10, "ab😀😀😀😀😀")).toEqual(["ab", "😀"]);
  });
  test("join a character that arrived in pieces", () => {
    const smile = bytes("😀");
    expect(kept(100, smile.subarray(0, 1), smile.subarray(1, 3), smile.subarray(3))).toEqual(["😀", ""]);
    expect(kept(4, smile.subarray(0, 1), smile.subarray(1))).toEqual(["😀", ""]);
  });
  test("hold no NUL, no broken character and no more bytes than the limit, whatever was printed", () => {
    for (const chunk of [
      new Uint8Array(999),
      new Uint8Array(999).fill(0xff),
      new Uint8Array(30).fill(0xff),
      bytes("\u{1F600}\0".repeat(99)),
    ]) {
      for (const limit of [1, 2, 3, 31, 64, 97]) {
        const [head, tail] = kept(limit, chunk);
        const text = head + tail;
        expect([text.includes("\0"), text.isWellFormed(), Buffer.byteLength(text) <= limit]).toEqual([false, true, true]);
      }
    }
  });
  test("do not change when the chunk is used again", () => {
    const chunk = bytes("abc");
    const capture = createCapture(8);
    capture.stdout(chunk);
    chunk.fill(0);
    expect(capture.captured().head).toBe("abc");
  });
});

describe("stderr", () => {
  test("is kept from its first word, stripped", () => {
    const capture = createCapture(0);
    capture.stdout(bytes("out"));
    capture.stderr(bytes(" \n\t".repeat(10_000)));
    capture.stderr(bytes("\n no route to host \n\n"));
    expect(capture.captured().stderr).toBe("no route to host");
  });
  test("is enough for 2,000 characters of any script", () => {
    const capture = createCapture(0);
    for (let n = 0; n < 100; n += 1) capture.stderr(bytes("漢".repeat(1_000)));
    expect(capture.captured().stderr.length).toBeGreaterThanOrEqual(2_000);
    expect(capture.captured().stderr.length).toBeLessThan(4_000);
  });
});

describe("the last line of stdout", () => {
  test.each([
    [["retry-after: 90s\n"], "retry-after: 90s"],
    [["a\nb\n", "retry-", "after: 1m\r\n\n"], "retry-after: 1m"],
    [["x".repeat(5_000), "\nlast"], "last"],
    [["x".repeat(5_000)], ""],
    [["x".repeat(250), "retry-after: 5s"], ""],
    [["\n\n"], ""],
    [[], ""],
  ] as const)("is found at the end of any output (%#)", (chunks, line) => {
    const capture = createCapture(0);
    for (const chunk of chunks) capture.stdout(bytes(chunk));
    capture.stderr(bytes("not this one\n"));
    expect(capture.captured().lastLine).toBe(line);
  });
});
