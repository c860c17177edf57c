/**
 * Where a database may lie: not on a network file system, not under somebody else's name, not behind a symlink that
 * others could have planted. Looks, never opens: closing any descriptor of a database file would drop SQLite's locks.
 */
import { lstatSync, realpathSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { OutboxError } from "../core/errors.ts";

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
 * @throws OutboxError `permission` (77) for owner and symlinks, `io` (74) for a network file system
 * @param uid who runs this process
 * @param fsType the number that the kernel gives the file system of a path
 */
export function checkPlace(path: string, uid: number, allowNetworkFs: boolean, fsType = (at: string): number => statfsSync(at).type): void {
  const real = look(path, lstatSync)?.isSymbolicLink() ? followed(path, uid) : path;
  const file = look(path, statSync);
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

/** Where the link leads, if nobody else could have planted it. */
function followed(path: string, uid: number): string {
  const directory = statSync(dirname(path));
  const others = (directory.mode & 0o022) !== 0 || (directory.uid !== uid && directory.uid !== 0);
  if (others)
    throw new OutboxError(
      "permission",
      `database ${path} is a symlink in a directory that others may write`,
      `name the real path, or keep others out of ${dirname(path)}`,
    );
  try {
    return realpathSync(path);
  } catch {
    throw new OutboxError("permission", `database ${path} is a symlink to nowhere`, "remove it, or name the real path");
  }
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

export function isDirectory(path: string): boolean {
  return look(path, statSync)?.isDirectory() === true;
}

function look(path: string, how: (path: string) => Stats): Stats | null {
  try {
    return how(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ELOOP") return null;
    throw new OutboxError(
      code === "EACCES" ? "permission" : "io",
      `database ${path}: ${error instanceof Error ? error.message : String(error)}`,
      "check the path and its directories",
    );
  }
}
