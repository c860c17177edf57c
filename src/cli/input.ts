/** Reading what a FILE flag names, `-` being stdin. Bounded, and strict about UTF-8: a replaced byte is a changed message. */
import { OutboxError } from "../core/errors.ts";
import { isDenied, refusedCode, refusedWords } from "../core/refused.ts";
import { homeOf } from "../settings/locate.ts";
import { expanded } from "../settings/place.ts";
import type { Io } from "./io.ts";

/**
 * Reads a file or stdin to its end.
 * @throws OutboxError `data` when it is missing or holds more than `limitBytes`, `permission`, `io`
 */
export async function readBytes(io: Io, name: string, limitBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of piecesWithin(io, name, { bytes: limitBytes, hint: "send less, or raise limits.payload" })) pieces.push(piece);
  return joined(pieces);
}

/**
 * Hands over each line as it comes, so that only one is held at a time, without its end. Lines count from 1; of several empty ones only the first is handed over.
 * @throws OutboxError as `readBytes`, and what `take` throws: then the rest is not read
 */
export async function readLines(
  io: Io,
  name: string,
  limit: { readonly bytes: number; readonly hint: string },
  take: (line: Uint8Array, number: number) => void,
): Promise<void> {
  let begun: Uint8Array[] = [];
  let number = 0;
  for await (const piece of piecesWithin(io, name, limit)) {
    let start = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, start)) {
      const rest = piece.subarray(start, end);
      number += 1;
      take(begun.length === 0 ? rest : joined([...begun, rest]), number);
      begun = [];
      start = end + 1;
      for (; piece[start] === LINE_FEED; start += 1) number += 1;
    }
    if (start < piece.length) begun.push(piece.subarray(start));
  }
  if (begun.length > 0) take(joined(begun), number + 1);
}
const LINE_FEED = 0x0a;

async function* piecesWithin(
  io: Io,
  name: string,
  limit: { readonly bytes: number; readonly hint: string },
): AsyncGenerator<Uint8Array, void, undefined> {
  const what = name === "-" ? "stdin" : name;
  const path = name === "-" ? null : pathFrom(io, name);
  let size = 0;
  try {
    for await (const piece of path === null ? io.stdin() : piecesOf(path)) {
      size += piece.length;
      if (size > limit.bytes) break;
      yield piece;
    }
  } catch (error) {
    throw unreadable(what, error);
  }
  if (size > limit.bytes) throw new OutboxError("data", `${what} holds more than ${limit.bytes} bytes`, limit.hint);
}

/** Whatever can be read: files, pipes, devices. A stream of Bun's denies access to devices (1.4.5). Reading waits as `cat` does. */
function* piecesOf(path: string): Generator<Uint8Array> {
  const { closeSync, openSync } = process.getBuiltinModule("node:fs"); // few messages come from a file
  const descriptor = openSync(path, "r");
  try {
    for (;;) {
      const piece = new Uint8Array(PIECE_BYTES);
      const length = readSome(descriptor, piece);
      if (length === 0) return;
      yield piece.subarray(0, length);
    }
  } finally {
    closeSync(descriptor);
  }
}
const PIECE_BYTES = 65_536;

/** What stands behind a name such as /dev/stdin may have been made non-blocking by its maker. */
function readSome(descriptor: number, into: Uint8Array): number {
  for (;;) {
    try {
      return process.getBuiltinModule("node:fs").readSync(descriptor, into);
    } catch (error) {
      if (refusedCode(error) !== "EAGAIN") throw error;
      Bun.sleepSync(2);
    }
  }
}

/** @throws OutboxError `data` when it is not valid UTF-8 */
export function utf8(bytes: Uint8Array, what: string): string {
  try {
    // A byte order mark is kept: what JSON does not allow must not vanish unseen.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new OutboxError("data", `${what} is not valid UTF-8`, "convert it first, for example with iconv");
  }
}

/**
 * A path of the command line, made absolute. `~/` reaches us unexpanded from crontabs and after an equals sign.
 * @throws OutboxError `data` where bytes of it were replaced: two files would be one
 */
export function pathFrom(io: Io, path: string): string {
  const whole = expanded(path, { home: homeOf(io.env), directory: io.cwd });
  if (!whole.includes("\ufffd")) return whole;
  throw new OutboxError(
    "data",
    `the path ${whole} holds bytes that are not UTF-8, or U+FFFD, which stands for them`,
    "rename it, or reach it by a link with another name",
  );
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function unreadable(what: string, error: unknown): OutboxError {
  const code = refusedCode(error);
  // What never was there is the caller's data, not a failing disk: nothing was stored, and trying again is pointless.
  if (code === "ENOENT") return new OutboxError("data", `cannot read ${what}: there is no such file`, "check the path");
  const text = `cannot read ${what}: ${refusedWords(error)}`;
  if (["ENOTDIR", "ENAMETOOLONG", "ELOOP"].includes(code)) return new OutboxError("data", text, "check the path", { cause: error });
  if (code === "EISDIR") return new OutboxError("data", text, "name a file", { cause: error });
  if (isDenied(error)) return new OutboxError("permission", text, "check owner and mode", { cause: error });
  return new OutboxError("io", text, "", { cause: error });
}
