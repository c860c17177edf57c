/**
 * Where a database may lie: not on a network file system, not under somebody else's name, not behind a symlink that
 * others could have planted. Looks, never opens: closing any descriptor of a database file would drop SQLite's locks.
 */
import { lstatSync, readlinkSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { OutboxError } from "../core/errors.ts";
import { isDenied, refusedCode, refusedWords } from "../core/refused.ts";
import { irregular, NAME_A_FILE } from "./unfit.ts";

/** File systems whose locks and shared memory do not reach other hosts; SQLite's WAL breaks there. (linux/magic.h) */
const NETWORK_FS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x517b, "SMB"],
  [0x01021997, "9P"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
]);

/**
 * @throws OutboxError `permission` (77) for owner and symlinks, `io` (74) for a network file system and what is no regular file
 * @param uid who runs this process
 * @param fsType the number that the kernel gives the file system of a path
 */
export function checkPlace(path: string, uid: number, allowNetworkFs: boolean, fsType = (at: string): number => statfsSync(at).type): void {
  const real = followed(path, uid);
  const file = look(path, statSync);
  checkRegular(path);
  if (file !== null && file.uid !== uid)
    throw new OutboxError(
      "permission",
      `database ${path} belongs to another user (uid ${file.uid}; this is uid ${uid})`,
      "run outbox as that user, or name another database with --db",
    );
  // SQLite would write through a link planted under the names of its companions, which lie beside the real file.
  for (const companion of [`${real}-wal`, `${real}-shm`, `${real}-journal`])
    if (look(companion, lstatSync)?.isSymbolicLink())
      throw new OutboxError("permission", `${companion} is a symlink`, "remove it; SQLite makes this file itself");
  if (!allowNetworkFs) checkFileSystem(path, file === null ? dirname(path) : path, fsType);
}

/** More links than this on one way lead round in a circle, says the kernel too. */
const MOST_LINKS = 40;

/**
 * The path with every link on the way followed, as the kernel does it: links among the directories, and links that links lead to.
 * What does not exist yet keeps its name.
 * @throws OutboxError `permission` for a link that somebody else could have planted or turned, and for one that leads nowhere
 */
function followed(path: string, uid: number): string {
  let real = "/";
  let links = 0;
  const ahead = path.split("/");
  /** So many of the names ahead, the last ones, are of the path itself; those before them are of a link. */
  let ownAhead = ahead.length;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    const isOfLink = ahead.length >= ownAhead;
    ownAhead = Math.min(ownAhead, ahead.length);
    if (name === "" || name === ".") continue;
    if (name === "..") {
      real = dirname(real);
      continue;
    }
    const next = `${real === "/" ? "" : real}/${name}`;
    const found = look(next, lstatSync);
    if (found === null && isOfLink) throw nowhere(path);
    if (found?.isSymbolicLink() !== true) {
      real = next;
      continue;
    }
    links += 1;
    if (links > MOST_LINKS) throw nowhere(path);
    if (isOthers(found, statSync(real), uid))
      throw new OutboxError(
        "permission",
        `database ${path} ${next === path ? "is" : `lies behind ${next},`} a symlink in a directory that others may write`,
        `name the real path, or keep others out of ${real}`,
      );
    const target = readlinkSync(next);
    if (target.startsWith("/")) real = "/";
    ahead.unshift(...target.split("/"));
  }
  return real;
}

/**
 * Whether somebody else could have made this link, or put another in its place. In a sticky directory (/tmp) others may add names
 * and not take away those of root or the caller, so a link of theirs can be believed.
 */
function isOthers(link: Stats, directory: Stats, uid: number): boolean {
  const isTrusted = ({ uid: owner }: Stats): boolean => owner === uid || owner === 0;
  if (!isTrusted(directory)) return true;
  return (directory.mode & 0o022) !== 0 && !((directory.mode & 0o1000) !== 0 && isTrusted(link));
}

function nowhere(path: string): OutboxError {
  return new OutboxError("permission", `database ${path} is a symlink to nowhere`, "remove it, or name the real path");
}

function checkFileSystem(path: string, at: string, fsType: (at: string) => number): void {
  if (look(at, statSync) === null) return; // the directory is still to be made
  const found = NETWORK_FS.get(fsType(at) >>> 0);
  if (found !== undefined)
    throw new OutboxError(
      "io",
      `database ${path} lies on a network file system (${found}), where its locks do not hold`,
      "name a local file, or accept the risk with --allow-network-fs",
    );
}

/** Whether anything has this name, a dangling link included. */
export function exists(path: string): boolean {
  return look(path, lstatSync) !== null;
}

/** Opening a pipe may wait for ever, and a device takes what it is given and keeps nothing. @throws OutboxError `io` */
export function checkRegular(path: string): void {
  const stats = look(path, statSync);
  const what = stats === null ? null : irregular(stats);
  if (what !== null) throw new OutboxError("io", `database ${path} ${what}`, NAME_A_FILE);
}

/** SQLite opens a path of fewer than 512 bytes, those of `-journal` included. (os_unix.c, MAX_PATHNAME) */
const LONGEST_PATH = 504;

/** @throws OutboxError `io` for a path that the file system takes and SQLite does not */
export function checkLength(path: string): void {
  const { length } = new TextEncoder().encode(path);
  if (length > LONGEST_PATH)
    throw new OutboxError(
      "io",
      `database ${path}: its path has ${length} bytes; SQLite opens up to ${LONGEST_PATH}`,
      "name one with a shorter path, or a link to its directory",
    );
}

function look(path: string, how: (path: string) => Stats): Stats | null {
  try {
    return how(path);
  } catch (error) {
    const code = refusedCode(error);
    if (code === "ENOENT" || code === "ELOOP") return null;
    throw new OutboxError(
      isDenied(error) ? "permission" : "io",
      `database ${path}: ${refusedWords(error)}`,
      "check the path and its directories",
      { cause: error },
    );
  }
}
