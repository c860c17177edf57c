/** What a settings file can hold, be, or lie in, read by the three ways there are: strictly, quickly, and while handing in. */
import { describe } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workstation } from "../../cli/running.ts";
import { type Case, ENQUEUE, hostile, ID } from "../../hostile/cases.ts";

/** Writes the settings file where it is looked for. */
function settings(text: string | Uint8Array, mode = 0o600): (place: Workstation) => void {
  return (place) => {
    mkdirSync(join(place.settingsFile, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(place.settingsFile, text, { mode });
    chmodSync(place.settingsFile, mode);
  };
}

/** Wrong for every command. The first sentence names file, line and column. */
function wrong(name: string, text: string | Uint8Array, said: RegExp = /./): Case {
  return { name: `${name}: config check`, args: ["config", "check"], before: settings(text), code: 78, said: sentence(said) };
}

/** The same where what is quick reads first. */
function bomb(name: string, text: string | Uint8Array, said: RegExp = /./): readonly Case[] {
  return [wrong(name, text, said), { name: `${name}: enqueue`, args: ENQUEUE, before: settings(text), code: 78, said: sentence(said) }];
}

function sentence(said: RegExp): RegExp {
  return new RegExp(`^outbox: [^\n]*settings\\.yaml:\\d+:\\d+: [^\n]*${said.source}`);
}

/** Refused by what looks closely, read by what is quick. */
function strict(name: string, text: string, said: RegExp): readonly Case[] {
  return [wrong(name, text, said), { name: `${name}: enqueue`, args: ENQUEUE, before: settings(text), code: 0, stdout: ID, stores: 1 }];
}

function fine(name: string, text: string): readonly Case[] {
  return [
    { name: `${name}: config check`, args: ["config", "check"], before: settings(text), code: 0, said: /^(outbox: [^\n]+\n)*$/ },
    { name: `${name}: enqueue`, args: ENQUEUE, before: settings(text), code: 0, stdout: ID, stores: 1 },
  ];
}

const laughs = (levels: number): string =>
  `a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n${Array.from({ length: levels }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(", ")}]\n`).join("")}`;
const mergeBomb = `x0: &x0 {a: 1}\n${Array.from({ length: 40 }, (_, n) => `x${n + 1}: &x${n + 1} {<<: [*x${n}, *x${n}]}\n`).join("")}`;

describe("a settings file of which the text is hostile", () => {
  hostile([
    ...bomb("a billion laughs", laughs(9)),
    ...bomb("a million merges", mergeBomb),
    ...bomb("10,000 levels in brackets", `a: ${"[".repeat(10_000)}`),
    ...bomb("10,000 levels in braces", "{a: ".repeat(10_000)),
    wrong("a merge of what is no mapping", "run: {<<: 8}", /<< takes in a mapping/),
    ...bomb("an anchor that holds itself", "run: &a {interval: *a}"),
    ...bomb("an alias of nothing", "run: *nothing"),
    wrong("a tab as indentation", "run:\n\tinterval: 5s\n", /tab/),
    ...bomb("a second document", "run: {interval: 5s}\n---\nlog: {level: debug}\n", /second document/),
    wrong("a tag that makes an object", "run: !!js/function 'function () {}'"),
    ...bomb("NUL", "run: {interval: 5s}\0"),
    wrong("an escape sequence", "run: {interval: \u001b[31m5s}", /U\+001B/),
    wrong("an escape sequence that is escaped", 'run: {interval: "\\e[31m"}', /\\x1b\[31m/),
    wrong("a carriage return alone", "run:\r  interval: 5s\r", /U\+000D/),
    ...bomb("Latin-1", Buffer.from("# caf\u00e9\nrun: {}\n", "latin1"), /not UTF-8/),
    wrong("UTF-16", Buffer.from("\ufeffrun: {}\n", "utf16le"), /./),
    wrong("a list", "- run\n"),
    wrong("half a mapping", "run: {interval: 5s"),
    wrong("Windows paths in double quotes", 'database: "C:\\Users\\me\\outbox.db"'),
    ...bomb("an unknown name", "dispach: {}", /did you mean dispatch/),
    wrong("a name in the wrong place", "timeout: 5s", /dispatch\.timeout/),
    wrong("a look-alike letter in a name", "r\u0443n: {interval: 5s}"),
    ...bomb("__proto__ as a name", "__proto__: {run: {interval: 5s}}", /__proto__/),
    wrong("constructor as a name", "constructor: {}", /constructor/),
    wrong("__proto__ within a section", "run: {__proto__: {interval: 1s}}", /__proto__/),
    wrong("__proto__ as a source", "sources: {__proto__: a.db}", /__proto__/),
    wrong("default as a source", "sources: {default: a.db}"),
    wrong("a name of 100 KB", `${"x".repeat(100_000)}: 1`),
    wrong("yes for a number", "dispatch: {concurrency: yes}"),
    wrong("a number beyond all bounds", "dispatch: {concurrency: 1e309}"),
    wrong("not a number", "dispatch: {backoff: {jitter: .nan}}"),
    wrong("a number with underscores", "dispatch: {concurrency: 1_000}"),
    wrong("0600 for an exit code", "dispatch: {permanent_exit_codes: [0600]}"),
    wrong("a sexagesimal time", "run: {interval: 1:30}"),
    wrong("a time of a thousand years", "retention: {delivered: 365000d}"),
    wrong("an unquoted placeholder", "dispatch: {notify_template: [a, {payload}]}", /quote/),
    wrong("a NUL in a template", 'dispatch: {notify_template: ["a\\0b"]}', /NUL/),
    wrong("memory as a database", 'database: ":memory:"'),
    ...strict("a name twice", "run: {interval: 5s}\nrun: {interval: 6s}\n", /set twice/),
    ...strict("a tag", "run: {interval: !!str 5s}", /tag/),
    ...strict("YAML 1.1", "%YAML 1.1\n---\nrun: {interval: 5s}\n", /YAML 1\.1/),
    ...fine("nothing", ""),
    ...fine("only a comment", "# nothing\n"),
    ...fine("a byte order mark and CR LF", "\ufeffrun:\r\n  interval: 5s\r\n"),
    ...fine(
      "routes called __proto__ and constructor",
      "dispatch: {routes: {__proto__: {timeout: 5s}, constructor: {timeout: 6s}, toString: {}}}",
    ),
    ...fine("5,000 routes", `dispatch:\n  routes:\n${Array.from({ length: 5_000 }, (_, n) => `    k${n}: {timeout: 5s}\n`).join("")}`),
  ]);
});

describe("a settings file that is no such file", () => {
  const named = ["config", "check", "--config", "named"];
  const refused = (name: string, code: number, before: (place: Workstation) => void, said?: RegExp): Case => ({
    name,
    args: named,
    before,
    code,
    ...(said === undefined ? {} : { said }),
  });
  hostile([
    refused("is missing", 78, () => undefined),
    refused("is a directory", 78, (place) => mkdirSync(place.file("named"))),
    refused("is a link to nothing", 78, (place) => symlinkSync("nothing", place.file("named"))),
    refused("is a link to itself", 78, (place) => symlinkSync("named", place.file("named"))),
    refused("is a link to a device without end", 78, (place) => symlinkSync("/dev/zero", place.file("named"))),
    refused("is larger than 256 KiB", 78, (place) => writeFileSync(place.file("named"), `#${"x".repeat(262_144)}`)),
    refused("is a gigabyte of holes", 78, (place) => Bun.spawnSync(["truncate", "-s", "1G", place.file("named")])),
    refused(
      "is written by everybody",
      77,
      (place) => (writeFileSync(place.file("named"), ""), chmodSync(place.file("named"), 0o666)),
      /chmod go-w/,
    ),
    refused(
      "is written by its group",
      77,
      (place) => (writeFileSync(place.file("named"), ""), chmodSync(place.file("named"), 0o620)),
      /chmod go-w/,
    ),
    refused(
      "lies in a directory that everybody writes",
      77,
      (place) => (writeFileSync(place.file("named"), "", { mode: 0o600 }), chmodSync(place.home, 0o777)),
      /chmod go-w/,
    ),
    { name: "is a pipe that nobody writes to", sh: "mkfifo named; outbox config check --config named", code: 78 },
    { name: "is /dev/zero", args: ["ls", "--config", "/dev/zero"], code: 78 },
    { name: "is /dev/stdin", args: ["ls", "--config", "/dev/stdin"], code: [77, 78] },
    { name: "is /proc/self/environ", args: ["ls", "--config", "/proc/self/environ"], code: [77, 78] },
    { name: "is named by nothing", args: ["ls", "--config="], code: 2 },
    { name: "is named by 5,000 characters", args: ["ls", "--config", "n".repeat(5_000)], code: 78 },
    { name: "is named by an escape sequence", args: ["ls", "--config", "\u001b[2J\n"], code: 78, said: /\\x1b\[2J\\x0a/ },
    { name: "lies below a file", args: ["ls", "--config", "/etc/passwd/x"], code: 78 },
    { name: "is missing although the database is named", args: [...ENQUEUE, "--db", "a.db", "--config", "nowhere.yaml"], code: 78 },
    {
      name: "is nothing, and the usual place is a pipe",
      sh: "mkdir -m 700 -p .config/outbox; mkfifo .config/outbox/settings.yaml; outbox ls",
      code: 78,
    },
    {
      name: "is wrong, and the program does not die of its message",
      args: ["config", "check", "--json"],
      before: settings("a: 1\n".repeat(500)),
      code: 78,
      stdout: /^\{"file":[^\n]+\}\n$/,
      said: /^$/,
    },
  ]);
});
