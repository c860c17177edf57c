/** What strace is asked: which calls a program makes, to kill it before one of them, or to let one of them fail. */

/** A system call of a run: the nth of its name. */
export interface Point {
  readonly call: string;
  readonly nth: number;
}

/** Calls that change a file, a name or the world. */
const WRITING = [
  "write",
  "writev",
  "pwrite64",
  "pwritev",
  "pwritev2",
  "sendto",
  "sendmsg",
  "fsync",
  "fdatasync",
  "ftruncate",
  "fallocate",
  "unlink",
  "unlinkat",
  "rename",
  "renameat",
  "renameat2",
  "link",
  "linkat",
  "mkdir",
  "mkdirat",
  "openat",
  "vfork",
];
/** Calls on a database file that a broken disk can refuse. `fcntl` locks, `mmap` maps the shared index. */
export const ON_FILES = ["pwrite64", "pread64", "fsync", "fdatasync", "ftruncate", "unlink", "openat", "fcntl", "mmap"];

// No --seccomp-bpf: with it strace 6.1 silently drops the signal. No -f: the thread that works with the database is the first.
const QUIET = ["strace", "-qq", "-y"];

/** Starts a program and writes down its writing calls. */
export function watched(log: string): readonly string[] {
  return [...QUIET, "-o", log, "-e", `trace=${WRITING.join(",")}`];
}

/** Starts a program and kills it before the call is made. */
export function killedBefore({ call, nth }: Point): readonly string[] {
  return [...QUIET, "-o", "/dev/null", "-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
}

/** Starts a program and writes down its calls on these files. */
export function watchedOn(paths: readonly string[], log: string): readonly string[] {
  return [...QUIET, "-o", log, ...on(paths), "-e", `trace=${ON_FILES.join(",")}`];
}

/** Starts a program one of whose calls on these files fails, once or from there on. */
export function failing(paths: readonly string[], { call, nth }: Point, error: string, everAfter: boolean): readonly string[] {
  const when = `${nth}${everAfter ? "+" : ""}`;
  return [...QUIET, "-o", "/dev/null", ...on(paths), "-e", `trace=${call}`, "-e", `inject=${call}:error=${error}:when=${when}`];
}

function on(paths: readonly string[]): string[] {
  return paths.flatMap((path) => ["-P", path]);
}

/** The calls of a log in their order; of `openat` those that may make a file, where only those are asked for. */
export function pointsOf(log: string, onlyWriting = true): Point[] {
  const made = new Map<string, number>();
  return log.split("\n").flatMap((line) => {
    const call = /^([a-z0-9_]+)\(/.exec(line)?.[1];
    if (call === undefined) return [];
    const nth = (made.get(call) ?? 0) + 1;
    made.set(call, nth);
    if (onlyWriting && call === "openat" && !line.includes("O_CREAT")) return [];
    return [{ call, nth }];
  });
}
