/** Who may import whom. The first row whose `files` match a path governs it; what a row does not name is forbidden. */
import { type Import, importsOf } from "./imports.ts";

interface Room {
  readonly name: string;
  readonly files: RegExp;
  /** Targets that may be imported in any way. */
  readonly may: readonly RegExp[];
  /** Targets of which only types may be imported. */
  readonly types?: readonly RegExp[];
  readonly why: string;
}

const PLATFORM = /^(node:[\w/]+|bun)$/;
const CORE = /^src\/core\//;
const STORE = /^src\/store\//;
const HOST = /^src\/host\.ts$/;
const LIBC = /^src\/libc\.ts$/;
const SQLITE = /^bun:sqlite$/;

export const ROOMS: readonly Room[] = [
  {
    name: "core",
    files: /^src\/core\//,
    may: [CORE],
    why: "core decides; what it needs of the world is passed in, so that every decision can be tested as a function",
  },
  {
    name: "host",
    files: /^src\/host\.ts$/,
    may: [/^src\/core\/seams\.ts$/, PLATFORM],
    why: "host is the clock and the dice and knows nothing of what they are for",
  },
  {
    name: "libc",
    files: LIBC,
    may: [/^bun:ffi$/],
    why: "one place calls into the C library, and knows nothing of what for",
  },
  {
    name: "settings/complain",
    files: /^src\/settings\/complain\.ts$/,
    may: [CORE, LIBC, /^src\/settings\//, /^valibot$/, /^yaml$/, PLATFORM],
    why: "the yaml package finds line and column; nobody else pays for loading it",
  },
  {
    name: "settings",
    files: /^src\/settings\//,
    may: [CORE, LIBC, /^src\/settings\//, /^valibot$/, PLATFORM],
    why: "settings turn a file into values; who uses them is not their affair",
  },
  {
    name: "store/open",
    files: /^src\/store\/open\.ts$/,
    may: [CORE, STORE, LIBC, SQLITE, PLATFORM],
    why: "one place opens databases, so that every handle is set up in the same order",
  },
  {
    name: "store",
    files: /^src\/store\//,
    may: [CORE, STORE, PLATFORM],
    types: [SQLITE],
    why: "the store remembers; time and ids are given to it, and the handle too",
  },
  {
    name: "transport",
    files: /^src\/transport\//,
    may: [CORE, /^src\/transport\//, PLATFORM],
    why: "a transport gets final values and answers with an outcome; it knows no row and no setting",
  },
  {
    name: "dispatcher/wake",
    files: /^src\/dispatcher\/wake\.ts$/,
    may: [PLATFORM],
    why: "waking watches a directory and knows nothing else; the runner gets it as a seam, so that a simulation needs no files",
  },
  {
    name: "dispatcher",
    files: /^src\/dispatcher\//,
    may: [CORE, STORE, /^src\/dispatcher\//, /^src\/transport\/transport\.ts$/],
    why: "the dispatcher takes turns over interfaces and plain values, so that a simulation can drive it",
  },
  {
    name: "the library",
    files: /^src\/(index\.ts$|library\/)/,
    may: [CORE, STORE, HOST, /^src\/library\//],
    types: [SQLITE],
    why: "a program that uses the library must not load a command line or a runner",
  },
  {
    name: "cli",
    files: /^src\/(cli\/|main\.ts$)/,
    may: [
      CORE,
      STORE,
      HOST,
      LIBC,
      PLATFORM,
      /^src\/(settings|transport|dispatcher|cli)\//,
      /^src\/index\.ts$/,
      /^citty$/,
      /^consola(\/\w+)?$/,
      /^package\.json$/,
    ],
    why: "the command line wires the rooms together and leaves the database to the store",
  },
];

/** Every import of the file that its room does not allow. */
export function strayImports(path: string, text: string): string[] {
  const room = ROOMS.find((row) => row.files.test(path));
  if (room === undefined) return /^src\/.*(?<!\.d)\.ts$/.test(path) ? [`${path} lies in no room`] : [];
  return importsOf(path, text)
    .filter((found) => !allowed(found, room))
    .map(({ target, how }) => `${room.name} imports ${target}${how === "type" ? " (types)" : ""}: ${room.why}`);
}

function allowed({ target, how }: Import, room: Room): boolean {
  return room.may.some((may) => may.test(target)) || (how === "type" && (room.types ?? []).some((may) => may.test(target)));
}
