/** What a system call was refused for, in words. The code of the system (ENOTDIR) says nothing to most people, and its own text quotes the call. */

const WORDS: Readonly<Record<string, string>> = {
  EACCES: "access was denied",
  EBADF: "it is not open for that",
  EBUSY: "it is in use",
  EDQUOT: "the disk quota is used up",
  EEXIST: "something of that name exists already",
  EFBIG: "a file size limit is reached",
  EIO: "the disk failed to read or write",
  EISDIR: "it is a directory",
  ELOOP: "a link leads back to itself",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "a name in it is too long",
  ENFILE: "too many files are open on this machine",
  ENODEV: "there is no such device",
  ENOENT: "there is no such file or directory",
  ENOMEM: "the machine is out of memory",
  ENOSPC: "no space left on the device",
  ENOTDIR: "a part of its path is not a directory",
  ENXIO: "there is no such device, or nobody is at its other end",
  EOPNOTSUPP: "it cannot be opened as a file",
  EPERM: "the system does not permit it",
  EROFS: "the file system is read-only",
  ETXTBSY: "it is a program that runs",
};

/** The system's short name of an error, for example `ENOENT`; empty when it has none. */
export function refusedCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/**
 * A part of a sentence.
 * @example refusedWords(error) === "a part of its path is not a directory"
 */
export function refusedWords(error: unknown): string {
  const code = refusedCode(error);
  return WORDS[code] ?? (code === "" ? "it failed" : `it failed (${code})`);
}

/** Whether owner or mode decided, and not the disk or how it is mounted. */
export function isDenied(error: unknown): boolean {
  return ["EACCES", "EPERM"].includes(refusedCode(error));
}
