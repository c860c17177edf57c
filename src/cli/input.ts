/** Reading what a FILE flag names, `-` being stdin. Bounded, and strict about UTF-8: a replaced byte is a changed message. */
import { OutboxError } from "../core/errors.ts";
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
    for await (const chunk of path === null ? io.stdin() : Bun.file(path).stream()) {
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
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // What never was there is the caller's data, not a failing disk: nothing was stored, and trying again is pointless.
  if (code === "ENOENT" || code === "ENOTDIR")
    return new OutboxError("data", `cannot read ${what}: there is no such file`, "check the path");
  if (code === "EISDIR") return new OutboxError("data", `cannot read ${what}: it is a directory`, "name a file");
  if (code === "EACCES" || code === "EPERM")
    return new OutboxError("permission", `cannot read ${what}: access was denied`, "check owner and mode");
  return new OutboxError("io", `cannot read ${what}: ${error instanceof Error ? error.message : String(error)}`, "", { cause: error });
}
