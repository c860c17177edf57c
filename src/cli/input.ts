/** Reading what a FILE flag names, `-` being stdin. Bounded, and strict about UTF-8: a replaced byte is a changed message. */
import { closeSync, openSync, readSync } from "node:fs";
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
  const what = name === "-" ? "stdin" : name;
  const path = name === "-" ? null : pathFrom(io, name);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of path === null ? io.stdin() : piecesOf(path)) {
      size += chunk.length;
      if (size > limitBytes) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw unreadable(what, error);
  }
  if (size > limitBytes) throw new OutboxError("data", `${what} holds more than ${limitBytes} bytes`, "send less, or raise limits.payload");
  return joined(chunks, size);
}

/** Whatever can be read: files, pipes, devices. A stream of Bun's denies access to devices (1.4.5). Reading waits as `cat` does. */
function* piecesOf(path: string): Generator<Uint8Array> {
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
      return readSync(descriptor, into);
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

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
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
