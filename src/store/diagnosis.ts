/**
 * What stands behind a SQLite error that names only its last consequence. Looks at the files, and only after something failed;
 * opens none of them: closing a descriptor of a database file would drop SQLite's locks.
 */
import { accessSync, constants, readFileSync, realpathSync, type Stats, statfsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { refusedCode } from "../core/refused.ts";
import { irregular, NAME_A_FILE, notWhole, type Cause } from "./unfit.ts";

const [ERROR, PERM, READONLY, IOERR, CANTOPEN, AUTH, NOTADB] = [1, 3, 8, 10, 14, 23, 26];
/** The memory that handles of one database share cannot be made large enough. */
const IOERR_SHMSIZE = 10 | (19 << 8);
/** A file that comes as close to the limit as one transaction may be large has reached it. */
const NEAR_LIMIT_BYTES = 512 * 1_048_576;

/** @param errno SQLite's, the extended part included. @returns null when the error says it all itself */
export function diagnose(errno: number, message: string, path: string): Cause | null {
  const code = errno & 0xff;
  if (code === ERROR) return unwhole(message);
  if (code === IOERR || code === CANTOPEN || code === NOTADB) {
    const stats = look(path);
    const what = stats === null ? null : irregular(stats);
    if (what !== null) return ["io", ` ${what}`, NAME_A_FILE];
  }
  if (code === IOERR || code === CANTOPEN) {
    const noRoom = outOfRoom(errno, path);
    if (noRoom !== null) return noRoom;
  }
  if (![PERM, READONLY, CANTOPEN, AUTH].includes(code)) return null;
  return isReadOnly(dirname(path)) ? ["io", ": its file system is read-only", "mount it for writing"] : companionsDenied(path);
}

/** A file of ours of which a part was taken away, or that never was whole. */
function unwhole(message: string): Cause | null {
  const missing = /^no such (?:table|column): (?:main\.)?(.+)$/.exec(message)?.[1];
  if (missing !== undefined) return notWhole(`${missing} is missing`);
  const column = /^table (\S+) has no column named (\S+)$/.exec(message);
  if (column !== null) return notWhole(`${column[1]}.${column[2]} is missing`);
  // A step that brings it forward makes what an older schema cannot have.
  const extra = /^(?:table|index|trigger|view|there is already an? \w+ named) (\S+)(?: already exists)?$/.exec(message)?.[1];
  return extra === undefined ? null : notWhole(`${extra} does not belong to its schema version`);
}

function outOfRoom(errno: number, path: string): Cause | null {
  const limit = fileSizeLimit();
  if ((errno & 0xff) === IOERR && limit !== null && largest(path) + NEAR_LIMIT_BYTES > limit)
    return ["io", `: a file size limit of ${limit} bytes is reached`, "raise it (ulimit -f), or remove it for outbox"];
  return errno === IOERR_SHMSIZE || isFull(dirname(path)) ? ["io", ": the disk is full", "free some space"] : null;
}

/** No block is free, or no room for another file. */
function isFull(directory: string): boolean {
  try {
    const { bavail, bfree, files, ffree } = statfsSync(directory);
    const free = process.getuid?.() === 0 ? bfree : bavail;
    return free === 0 || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

/** Mounted so, or made so by the system after an error of the disk. */
function isReadOnly(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch (error) {
    return refusedCode(error) === "EROFS";
  }
}

/** How large a file of this process may become; null where nothing limits it, or nothing says so. */
function fileSizeLimit(): number | null {
  try {
    const soft = /^Max file size\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

function largest(path: string): number {
  return Math.max(...[path, ...companions(path)].map((each) => look(each)?.size ?? 0));
}

/** SQLite gives its companions the mode that the file had then; a later chmod of the file alone leaves them behind. */
function companionsDenied(path: string): Cause | null {
  if (!isOpenTo(path)) return null;
  const denied = companions(path).filter((each) => look(each) !== null && !isOpenTo(each));
  if (denied.length === 0) return null;
  const owners = new Set(denied.map((each) => look(each)?.uid));
  const isOurs = owners.size === 1 && owners.has(process.getuid?.());
  const names = denied.map(quoted).join(" ");
  return [
    "permission",
    `: ${denied.map((each) => basename(each)).join(" and ")} beside it cannot be written`,
    isOurs ? `chmod 600 ${names}` : `chown it to this user, or run outbox as its owner: ${names}`,
  ];
}

/** They lie beside the real file. */
function companions(path: string): readonly string[] {
  let real = path;
  try {
    real = realpathSync(path);
  } catch {
    // It is not there, so neither are they.
  }
  return [`${real}-wal`, `${real}-shm`, `${real}-journal`];
}

function isOpenTo(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function look(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/** As a shell reads it back. */
function quoted(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
