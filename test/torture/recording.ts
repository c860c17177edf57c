/** What a run did to the disk and when it answered, read from strace. */
import type { Change } from "./disk.ts";

/** What the outside saw, and so may rely on. */
export type Seen =
  /** The program wrote to its stdout or stderr. */
  | { readonly kind: "printed"; readonly text: string }
  /** A command wrote to its log. */
  | { readonly kind: "noted"; readonly text: string };

/** In the order of the kernel. */
export type Event = Change | Seen;

/** What is traced. Only what changes the disk, and what is answered. */
export const RECORDED = [
  "openat",
  "open",
  "creat",
  "pwrite64",
  "pwritev",
  "pwritev2",
  "write",
  "writev",
  "sendto",
  "sendmsg",
  "fsync",
  "fdatasync",
  "sync_file_range",
  "ftruncate",
  "truncate",
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
  "mmap",
];

/** Starts a program, all of whose processes are recorded, bytes and all. */
export function recorded(log: string): readonly string[] {
  return ["strace", "-f", "--seccomp-bpf", "-y", "-qq", "-xx", "-s", "40000000", "-o", log, "-e", `trace=${RECORDED.join(",")}`];
}

/** Where a program works: what happens to its database counts, what happens in the log of its commands is an answer. */
export interface Where {
  /** Below it names are followed. */
  readonly home: string;
  /** Paths begin so: the database and its companions. */
  readonly database: string;
  readonly log: string;
}

/** @throws Error where something was done that this does not understand: a recording with a gap proves nothing */
export function eventsOf(trace: string, where: Where): Event[] {
  return callsOf(trace).flatMap((call) => eventOf(call, where));
}

interface Call {
  readonly name: string;
  readonly args: string;
  readonly result: number;
  /** Its answer may be seen before it returns, its effect is sure only when it has: calls are put where they return, answers where they begin. */
}

/** The calls that succeeded. A call that another interrupted stands where it returned, but one that prints where it began. */
function callsOf(trace: string): Call[] {
  const calls: (Call | null)[] = [];
  const begun = new Map<string, { readonly text: string; readonly at: number }>();
  for (const line of trace.split("\n")) {
    const [, process = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (text.endsWith("<unfinished ...>")) {
      begun.set(process, { text: text.slice(0, -"<unfinished ...>".length).trimEnd(), at: calls.push(null) - 1 });
      continue;
    }
    const rest = /^<\.\.\. \w+ resumed>(.*)$/.exec(text)?.[1];
    const start = rest === undefined ? undefined : begun.get(process);
    const found = /^(\w+)\((.*)\) += (-?(?:0x)?[0-9a-f]+)/.exec(start === undefined ? text : `${start.text}${rest}`);
    if (found === null || found[3]?.startsWith("-")) continue;
    const call = { name: found[1] ?? "", args: found[2] ?? "", result: Number(found[3]) };
    if (start !== undefined && /^(p?write|send)/.test(call.name) && !call.name.startsWith("pwrite64")) calls[start.at] = call;
    else calls.push(call);
  }
  return calls.filter((call) => call !== null);
}

function eventOf({ name, args, result }: Call, where: Where): Event[] {
  // Of mmap the descriptor is the last but one; every other call that has one has it first.
  const target = (name === "mmap" ? /, \d+<([^>]*)>, / : /^\d+<([^>]*)>/).exec(args);
  const path = target === null ? null : textOf(target[1] ?? "");
  const ours = (path: string): boolean => path.startsWith(where.database) && !path.endsWith("-shm") && !path.endsWith(" (deleted)");
  switch (name) {
    case "open":
    case "openat":
    case "creat": {
      const opened = named(args)[0] ?? "";
      if (!ours(opened) || !(name === "creat" || args.includes("O_CREAT"))) return [];
      const cut = args.includes("O_TRUNC") ? [{ kind: "cut", path: opened, size: 0 } as const] : [];
      return [{ kind: "make", path: opened }, ...cut];
    }
    case "unlink":
    case "unlinkat":
      return named(args)
        .filter(ours)
        .map((path) => ({ kind: "remove", path }));
    case "rename":
    case "renameat":
    case "renameat2":
    case "link":
    case "linkat": {
      const [from = "", to = ""] = named(args);
      return ours(from) || ours(to) ? [{ kind: name.startsWith("link") ? "link" : "rename", path: from, to }] : [];
    }
    case "mkdir":
    case "mkdirat":
      return named(args)
        .filter((path) => path.startsWith(where.home))
        .map((path) => ({ kind: "directory", path }));
    case "mmap":
      if (path !== null && ours(path) && args.includes("PROT_WRITE") && args.includes("MAP_SHARED")) throw new Error(`mapped: ${path}`);
      return [];
    default:
      return path === null ? [] : onDescriptor(name, path, args, result, { ...where, ours });
  }
}

function onDescriptor(
  name: string,
  path: string,
  args: string,
  result: number,
  { database, home, log, ours }: Where & { readonly ours: (path: string) => boolean },
): Event[] {
  const directory = database.slice(0, database.lastIndexOf("/"));
  if (/^f(data)?sync$/.test(name)) {
    if (ours(path)) return [{ kind: "sync", path }];
    // A directory from that of the database up to the home.
    return path.startsWith(home) && `${directory}/`.startsWith(`${path}/`) ? [{ kind: "sync names", path }] : [];
  }
  if (ours(path)) {
    if (name === "ftruncate") return [{ kind: "cut", path, size: Number(args.slice(args.lastIndexOf(",") + 1)) }];
    if (name !== "pwrite64") throw new Error(`not understood: ${name} on ${path}`);
    const [, bytes = "", at] = /^[^,]*, "((?:\\x[0-9a-f]{2})*)", \d+, (\d+)$/.exec(args) ?? [];
    if (at === undefined) throw new Error(`not understood: ${args.slice(0, 80)}`);
    return [{ kind: "write", path, at: Number(at), bytes: bytesOf(bytes).subarray(0, result) }];
  }
  if (!/^(write|writev|pwritev2|sendto|sendmsg)$/.test(name)) return [];
  const text = Buffer.concat(strings(args.slice(args.indexOf(">") + 1)).map(bytesOf)).toString();
  if (path === log) return [{ kind: "noted", text }];
  return path.startsWith("/") ? [] : [{ kind: "printed", text }]; // a pipe
}

const strings = (args: string): string[] => [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map((match) => match[1] ?? "");

/** The paths that a call names. */
const named = (args: string): string[] => strings(args).map((text) => bytesOf(text).toString());

const bytesOf = (escaped: string): Buffer => Buffer.from(escaped.replaceAll("\\x", ""), "hex");

/** A path behind a descriptor, escaped or not. */
const textOf = (path: string): string => (path.startsWith("\\x") ? bytesOf(path).toString() : path);
