/**
 * Keeps a bounded part of what a command prints, however much it prints: the beginning and the end of both streams together, the
 * beginning of stderr for the error, and the last line of stdout for its `retry-after`.
 */

/** Bytes of stderr that are kept for the error: enough for 2,000 characters of any script. */
const STDERR_LIMIT = 8_000;

/** Bytes of stdout that are kept for its last line; a longer line is no `retry-after`. */
const LAST_LINE_LIMIT = 256;

/** What was kept, as well-formed text without NUL. */
export interface Captured {
  /** The first half of the limit, or everything when nothing had to be dropped. */
  readonly head: string;
  /** The last half of the limit; empty when `head` is everything. */
  readonly tail: string;
  /** The beginning of stderr, without the white space before it. */
  readonly stderr: string;
  /** The last line of stdout that says something; empty when it is too long to be kept. */
  readonly lastLine: string;
}

export interface Capture {
  /** Takes note of a chunk and keeps no reference to it. */
  readonly stdout: (chunk: Uint8Array) => void;
  readonly stderr: (chunk: Uint8Array) => void;
  readonly captured: () => Captured;
}

/** @param limit bytes of output that are kept, head and tail together */
export function createCapture(limit: number): Capture {
  const head = firstBytes(Math.ceil(limit / 2));
  const tail = lastBytes(Math.floor(limit / 2));
  const error = firstBytes(STDERR_LIMIT);
  const line = lastBytes(LAST_LINE_LIMIT);
  const both = (chunk: Uint8Array): void => tail.take(chunk.subarray(head.take(chunk)));
  return {
    stdout(chunk) {
      both(chunk);
      line.take(chunk);
    },
    stderr(chunk) {
      both(chunk);
      error.take(error.empty() ? withoutLeadingSpace(chunk) : chunk);
    },
    captured() {
      const whole = !tail.overflowed();
      return {
        head: whole
          ? fit(decode(join(head.bytes(), tail.bytes())), limit, "start")
          : fit(decode(head.bytes(), "end"), Math.ceil(limit / 2), "start"),
        tail: whole ? "" : fit(decode(tail.bytes(), "start"), Math.floor(limit / 2), "end"),
        stderr: decode(error.bytes(), "end").trim(),
        lastLine: lastLineOf(decode(line.bytes(), "start"), line.overflowed()),
      };
    },
  };
}

/** Remembers the first `limit` bytes; `take` answers how many of the chunk it took. */
function firstBytes(limit: number): { take(chunk: Uint8Array): number; empty(): boolean; bytes(): Uint8Array } {
  let buffer = new Uint8Array();
  let length = 0;
  return {
    take(chunk) {
      const taken = Math.min(chunk.length, limit - length);
      if (taken <= 0) return 0;
      if (length === 0) buffer = new Uint8Array(limit);
      buffer.set(chunk.subarray(0, taken), length);
      length += taken;
      return taken;
    },
    empty: () => length === 0,
    bytes: () => buffer.subarray(0, length),
  };
}

/** Remembers the last `limit` bytes in a ring, so that a flood costs one copy of what it overwrites. */
function lastBytes(limit: number): { take(chunk: Uint8Array): void; overflowed(): boolean; bytes(): Uint8Array } {
  let ring = new Uint8Array();
  let total = 0;
  return {
    take(chunk) {
      if (chunk.length === 0) return;
      if (total === 0) ring = new Uint8Array(limit);
      const kept = chunk.subarray(Math.max(0, chunk.length - limit));
      total += chunk.length;
      if (kept.length === 0) return;
      const at = (total - kept.length) % limit;
      const untilWrap = Math.min(kept.length, limit - at);
      ring.set(kept.subarray(0, untilWrap), at);
      ring.set(kept.subarray(untilWrap), 0);
    },
    overflowed: () => total > limit,
    bytes() {
      if (total <= limit) return ring.subarray(0, total);
      const at = total % Math.max(limit, 1);
      return join(ring.subarray(at), ring.subarray(0, at));
    },
  };
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

/** Decodes leniently and drops NULs, which text in a database cannot hold. `cut` names the end at which bytes are missing. */
function decode(bytes: Uint8Array, cut?: "start" | "end"): string {
  let from = 0;
  // The rest of a character whose beginning was dropped: at most three bytes.
  if (cut === "start") while (from < 3 && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  // With `stream` the decoder holds back a character whose end is missing.
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from), { stream: cut === "end" });
  return text.replaceAll("\0", "");
}

/** Cuts text to `limit` bytes of UTF-8: each byte that was no UTF-8 has become three. `keep` names the end that stays. */
function fit(text: string, limit: number, keep: "start" | "end"): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return text;
  return keep === "start" ? decode(bytes.subarray(0, limit), "end") : decode(bytes.subarray(bytes.length - limit), "start");
}

function withoutLeadingSpace(chunk: Uint8Array): Uint8Array {
  const at = chunk.findIndex((byte) => byte > 0x20);
  return at === -1 ? chunk.subarray(chunk.length) : chunk.subarray(at);
}

function lastLineOf(text: string, cut: boolean): string {
  const lines = text.trimEnd().split("\n");
  // The only line of text whose beginning was dropped may have lost a part of itself.
  return cut && lines.length === 1 ? "" : (lines.at(-1) ?? "").trim();
}
