/**
 * The few system calls that stand between an enqueue or a look and its answer, straight from the C library. node:fs has them too, but
 * loading it takes 25 blocks of heap and 180 page faults, where an empty program has 28 and 700. This is the plain way only: whatever
 * is unusual is answered with null, and the caller asks node:fs, which also says what was wrong. So it is on Linux with glibc alone.
 */
import { dlopen, read as peek } from "bun:ffi";

/** What is known of a file. */
export interface Facts {
  readonly kind: "file" | "directory" | "other";
  readonly uid: number;
  readonly mode: number;
  readonly size: number;
}

export interface Libc {
  /** Of the file, or of the link itself. `missing`: nothing has this name. */
  facts(path: string, links: "follow" | "stay"): Facts | "missing" | null;
  factsOf(descriptor: number): Facts | null;
  /** The name with all links followed. */
  realpath(path: string): string | null;
  /** To read, never through a link, and without waiting at a pipe. */
  open(path: string): number | null;
  /** @returns how many bytes were read; 0 at the end */
  read(descriptor: number, into: Uint8Array): number | null;
  close(descriptor: number): void;
  isTerminal(descriptor: number): boolean;
  /** @returns how many bytes were taken: perhaps not all of them */
  write(descriptor: number, bytes: Uint8Array): number | null;
  /** Seconds to add to UTC for local time at this instant (epoch seconds), by TZ or /etc/localtime; 0 also for a TZ it does not know. */
  utcOffsetS(epochS: number): number | null;
}

/** Null where it cannot be had. */
export function libc(): Libc | null {
  return (loaded ??= load() ?? "none") === "none" ? null : loaded;
}
let loaded: Libc | "none" | undefined;

const O_NOFOLLOW: Readonly<Record<string, number>> = { x64: 0o400000, arm64: 0o100000 };
const [O_NONBLOCK, O_CLOEXEC] = [0o4000, 0o2000000];
const [AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH] = [-100, 0x100, 0x1000];
const [ENOENT, ENOTDIR] = [2, 20];
const PATH_MAX = 4_096;

function load(): Libc | null {
  const noFollow = O_NOFOLLOW[process.arch];
  if (process.platform !== "linux" || noFollow === undefined) return null;
  try {
    return over(open(), noFollow);
  } catch {
    return null; // another C library, or one without statx
  }
}

function open() {
  return dlopen("libc.so.6", {
    write: { args: ["i32", "ptr", "usize"], returns: "i32" },
    open: { args: ["ptr", "i32"], returns: "i32" },
    read: { args: ["i32", "ptr", "usize"], returns: "i32" },
    close: { args: ["i32"], returns: "i32" },
    isatty: { args: ["i32"], returns: "i32" },
    statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
    realpath: { args: ["ptr", "ptr"], returns: "ptr" },
    __errno_location: { args: [], returns: "ptr" },
  }).symbols;
}

function over(c: ReturnType<typeof open>, noFollow: number): Libc {
  const errnoAt = c.__errno_location();
  const ask = (directory: number, path: string, flags: number): Facts | "missing" | null => {
    const answer = new Uint8Array(STATX_BYTES);
    const name = cText(path);
    // Read at once: only this thread can change it, and only by another call.
    const failed = c.statx(directory, name, flags, STATX_BASIC, answer) !== 0;
    const errno = failed && errnoAt !== null ? peek.i32(errnoAt, 0) : 0;
    if (failed) return errno === ENOENT || errno === ENOTDIR ? "missing" : null;
    return factsIn(answer);
  };
  return {
    facts: (path, links) => ask(AT_FDCWD, path, links === "stay" ? AT_SYMLINK_NOFOLLOW : 0),
    factsOf: (descriptor) => {
      const facts = ask(descriptor, "", AT_EMPTY_PATH);
      return facts === "missing" ? null : facts;
    },
    realpath: (path) => {
      const real = new Uint8Array(PATH_MAX);
      return c.realpath(cText(path), real) === null ? null : utf8(real.subarray(0, real.indexOf(0)));
    },
    open: (path) => positive(c.open(cText(path), noFollow | O_NONBLOCK | O_CLOEXEC)),
    read: (descriptor, into) => positive(c.read(descriptor, into, into.length)),
    close: (descriptor) => void c.close(descriptor),
    isTerminal: (descriptor) => c.isatty(descriptor) === 1,
    write: (descriptor, bytes) => positive(c.write(descriptor, bytes, bytes.length)),
    utcOffsetS,
  };
}

/** Opened by itself: an enqueue seldom needs it, and each function costs its time. */
function openTime() {
  return dlopen("libc.so.6", { localtime_r: { args: ["ptr", "ptr"], returns: "ptr" } }).symbols;
}
let time: ReturnType<typeof openTime> | undefined;

// struct tm where a long has 64 bits: nine ints, then tm_gmtoff. No zone is further from UTC than 32 bits.
const [TM_BYTES, TM_GMTOFF] = [56, 40];

function utcOffsetS(epochS: number): number | null {
  time ??= openTime();
  const [instant, answer] = [new BigInt64Array([BigInt(Math.floor(epochS))]), new Uint8Array(TM_BYTES)];
  return time.localtime_r(instant, answer) === null ? null : new DataView(answer.buffer).getInt32(TM_GMTOFF, true);
}

// linux/stat.h: the same on every architecture, unlike `struct stat`.
const STATX_BYTES = 256;
const STATX_BASIC = 0x7ff;
const [TYPE, MODE, UID, SIZE] = [0x1, 0x2, 0x8, 0x200];
const [S_IFMT, S_IFREG, S_IFDIR] = [0o170000, 0o100000, 0o040000];

function factsIn(answer: Uint8Array): Facts | null {
  const view = new DataView(answer.buffer);
  const has = view.getUint32(0, true);
  if ((has & (TYPE | MODE | UID | SIZE)) !== (TYPE | MODE | UID | SIZE)) return null;
  const mode = view.getUint16(28, true);
  const type = mode & S_IFMT;
  return {
    kind: type === S_IFREG ? "file" : type === S_IFDIR ? "directory" : "other",
    uid: view.getUint32(20, true),
    mode: mode & 0o7777,
    size: view.getUint32(44, true) * 2 ** 32 + view.getUint32(40, true),
  };
}

/** @throws TypeError for a NUL inside, which would cut it short; nobody passes one */
function cText(text: string): Uint8Array {
  if (text.includes("\0")) throw new TypeError("a path holds NUL");
  return new TextEncoder().encode(`${text}\0`);
}

/** A name whose bytes are no UTF-8 cannot be held as text. */
function utf8(bytes: Uint8Array): string | null {
  const text = new TextDecoder().decode(bytes);
  return text.includes("\ufffd") ? null : text;
}

function positive(number: number): number | null {
  return number < 0 ? null : number;
}
