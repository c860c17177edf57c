/**
 * Whether the settings file may be believed. It names commands to run, so nobody but root and the caller may be able to
 * change it. What is checked is what is read: the open descriptor, not the name.
 */
import type { Stats } from "node:fs";
import { OutboxError } from "../core/errors.ts";
import { refusedCode } from "../core/refused.ts";
import { refusedWords } from "../core/refused.ts";
import { escapeControls } from "../core/visible.ts";
import { readPlain } from "./plain.ts";
import { decode } from "./text.ts";

/**
 * Largest settings file in bytes. A written one has a few hundred; what is larger is another file, and the search for repeated
 * names takes time that grows with the square of their number.
 */
const LARGEST = 262_144;

/**
 * Reads the file behind `path`.
 * @param uid the caller's
 * @returns the real name, links followed, and the text
 * @throws OutboxError `permission` when others could change it or it cannot be read; `settings` when it is no text file
 */
export function readTrusted(path: string, uid: number): { readonly file: string; readonly text: string } {
  const plain = readPlain(path, uid, LARGEST);
  if (plain !== null) return { file: plain.file, text: decode(plain.bytes, plain.file) };
  return readWary(path, uid);
}

/** The same step by step, for every system and with words for what is wrong. */
export function readWary(path: string, uid: number): { readonly file: string; readonly text: string } {
  const { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync, statSync } = nodeFs();
  const file = attempt(path, () => realpathSync(path));
  // Looked at before it is opened: opening a FIFO waits for a writer, and opening a device may do anything.
  mustBeFile(
    file,
    attempt(file, () => lstatSync(file)),
  );
  const directory = file.slice(0, file.lastIndexOf("/")) || "/";
  mustBeOurs(
    directory,
    attempt(directory, () => statSync(directory)),
    uid,
  );
  const descriptor = attempt(file, () => openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  try {
    const stats = fstatSync(descriptor);
    mustBeFile(file, stats);
    mustBeOurs(file, stats, uid);
    return {
      file,
      text: decode(
        attempt(file, () => contents(file, descriptor)),
        file,
      ),
    };
  } finally {
    closeSync(descriptor);
  }
}

/** Only where it is needed: loading it is a good part of what an enqueue costs. */
function nodeFs(): typeof import("node:fs") {
  return process.getBuiltinModule("node:fs");
}

function mustBeFile(file: string, stats: Stats): void {
  if (stats.isFile()) return;
  const what = stats.isDirectory() ? "a directory" : stats.isFIFO() ? "a pipe" : stats.isSocket() ? "a socket" : "a device";
  throw new OutboxError("settings", `the settings file ${escapeControls(file)} is ${what}`, "name a regular file");
}

/** Owned by root or the caller, and not writable by group or others. */
function mustBeOurs(path: string, stats: Stats, uid: number): void {
  const what = stats.isDirectory() ? "the directory of the settings file" : "the settings file";
  const name = escapeControls(path);
  if (stats.uid !== 0 && stats.uid !== uid)
    throw new OutboxError(
      "permission",
      `${what} is owned by another user (uid ${stats.uid}), who could name commands to run: ${name}`,
      `chown ${uid} ${quoted(name)}`,
    );
  if ((stats.mode & 0o022) !== 0)
    throw new OutboxError(
      "permission",
      `${what} can be written by others, who could name commands to run: ${name}`,
      `chmod go-w ${quoted(name)}`,
    );
}

/** At most LARGEST bytes, also when the file grows meanwhile. */
function contents(file: string, descriptor: number): Uint8Array {
  const { fstatSync, readSync } = nodeFs();
  const buffer = new Uint8Array(Math.min(fstatSync(descriptor).size, LARGEST) + 1);
  let length = 0;
  let room = buffer;
  while (true) {
    const count = readSync(descriptor, room, length, room.length - length, null);
    if (count === 0) return room.subarray(0, length);
    length += count;
    if (length > LARGEST)
      throw new OutboxError("settings", `the settings file ${escapeControls(file)} is larger than 256 KiB`, "name the right file");
    if (length === room.length) {
      const larger = new Uint8Array(Math.min(room.length * 2, LARGEST) + 1);
      larger.set(room);
      room = larger;
    }
  }
}

function attempt<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof OutboxError) throw error;
    const code = refusedCode(error) || String(error);
    const name = escapeControls(path);
    switch (code) {
      case "ENOENT":
        throw new OutboxError(
          "settings",
          `the settings file ${name} does not exist or is a link to nothing`,
          "mend the link or remove it",
          { cause: error },
        );
      case "ELOOP":
        throw new OutboxError("settings", `the settings file ${name} is a link that leads back to itself`, "mend the link or remove it", {
          cause: error,
        });
      case "EACCES":
      case "EPERM":
        throw new OutboxError(
          "permission",
          `the settings file ${name} may not be read: ${refusedWords(error)}`,
          `chmod u+r ${quoted(name)}, or run as its owner`,
          { cause: error },
        );
      default:
        throw new OutboxError("io", `cannot read the settings file ${name}: ${refusedWords(error)}`, "", { cause: error });
    }
  }
}

/** As a shell reads it back. */
function quoted(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
