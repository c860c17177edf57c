/** Where and how the program can be started: without a home, a path, a directory, descriptors, memory, or with files that lie in wait. */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect } from "bun:test";
import { BINARY } from "../../cli/outbox.ts";
import { type Case, ENQUEUE, hostile, ID } from "../../hostile/cases.ts";

const TO = ENQUEUE.join(" ");
/** The one message whose runner vanished on its last attempt. */
const DIED = /^outbox: 21 ping to seat-0 died: [^\n]*\n$/;
const OUTBOX = `env -i ${BINARY}`;

describe("an environment", () => {
  const told = (name: string, env: Readonly<Record<string, string>>, code: number, said: RegExp): Case => ({
    name,
    args: ["ls"],
    env,
    code,
    said,
  });
  hostile([
    { name: "that is empty, with a database", sh: `${OUTBOX} ${TO} --db a.db`, code: 0, stdout: ID },
    {
      name: "that is empty, with a home that is known elsewhere",
      sh: `env -i HOME="$HOME" ${BINARY} ${TO}`,
      code: 0,
      stdout: ID,
      stores: 1,
    },
    { name: "with a HOME that is missing", sh: `env -i HOME=/nonexistent/home ${BINARY} ls`, code: 1 },
    { name: "with a HOME that is missing, for those who hand in", sh: `env -i HOME=/proc/nonexistent ${BINARY} ${TO}`, code: [74, 77] },
    { name: "with a HOME that is a file", sh: `env -i HOME=/etc/passwd ${BINARY} ${TO}`, code: [74, 77] },
    { name: "with a HOME of blanks", sh: `env -i HOME=' ' ${BINARY} version`, code: 0 },
    {
      name: "with a HOME with a line break",
      sh: `mkdir "$(printf 'a\\nb')"; env -i HOME="$PWD/$(printf 'a\\nb')" ${BINARY} ${TO}`,
      code: 0,
      stdout: ID,
    },
    {
      name: "with an empty PATH, which is as good as none",
      args: ["run", "--once"],
      env: { PATH: "" },
      code: 0,
      before: (place) => void place.settings({ dispatch: { notify_template: ["true"] } }),
      said: DIED,
      changes: true,
      after: (place) => expect(place.row(1).status).toBe("delivered"),
    },
    {
      name: "without a PATH",
      sh: `unset PATH; exec ${BINARY} run --once`,
      code: 78,
      before: (place) => void place.settings({ dispatch: { notify_template: ["nonexistent"] } }),
      said: /\noutbox: no command "nonexistent" in PATH \(\/usr\/bin:\/bin, since none is set\); [^\n]*\n$/,
      changes: true,
      after: (place) => expect(place.row(1).status).toBe("pending"),
    },
    ...["", "Nowhere/Nothing", ":::", "/etc/passwd", "\u001b[31m", "x".repeat(10_000), "../../../etc/passwd", "UTC+25", "<+99>-99"].map(
      (TZ): Case => ({ name: `with TZ ${JSON.stringify(TZ.slice(0, 20))}`, args: ["ls"], env: { TZ }, code: 0 }),
    ),
    { name: "with a TERM that is dumb and NO_COLOR", args: ["ls"], env: { TERM: "dumb", NO_COLOR: "1" }, code: 0 },
    { name: "with a TERM of escape sequences", args: ["ls"], env: { TERM: "\u001b[31m", COLUMNS: "-5", LINES: "1e9" }, code: 0 },
    {
      name: "with FORCE_COLOR and DEBUG",
      args: ["ls"],
      env: { FORCE_COLOR: "3", DEBUG: "*", NODE_DEBUG: "*", CLICOLOR_FORCE: "1" },
      code: 0,
    },
    { name: "with a locale that is none", args: ["ls"], env: { LANG: "xx_YY.nonsense", LC_ALL: "nonsense" }, code: 0 },
    {
      name: "with options for the runtime",
      args: ["ls"],
      env: { NODE_OPTIONS: "--require ./evil.js", BUN_INSPECT_PRELOAD: "./evil.ts", NODE_PATH: "." },
      before: (place) => evil(place.home),
      code: 0,
      after: (place) => expect(existsSync(place.file("EVIL"))).toBeFalse(),
    },
    { name: "with switches of the runtime that are off", args: ["ls"], env: { BUN_BE_BUN: "0", BUN_CONFIG_VERBOSE_FETCH: "1" }, code: 0 },
    told("with an OUTBOX_DB that is an address", { OUTBOX_DB: "http://x/y" }, 2, /^outbox: OUTBOX_DB /),
    told("with an OUTBOX_DB of blanks", { OUTBOX_DB: " " }, 1, /^outbox: no database at /),
    told("with an OUTBOX_DB with an escape sequence", { OUTBOX_DB: "\u001b[2J" }, 1, /\\x1b\[2J/),
    told("with an OUTBOX_CONFIG that is a directory", { OUTBOX_CONFIG: "/" }, 78, /a directory/),
    told("with an OUTBOX_CONFIG that is relative and missing", { OUTBOX_CONFIG: "nowhere" }, 78, /does not exist/),
    {
      name: "with variables that are empty",
      args: ["ls"],
      env: { OUTBOX_DB: "", OUTBOX_CONFIG: "", OUTBOX_ID: "", OUTBOX_ACK_TOKEN: "", XDG_CONFIG_HOME: "", XDG_STATE_HOME: "" },
      code: 0,
    },
    {
      name: "with variables of XDG that are relative",
      args: ["ls"],
      env: { XDG_CONFIG_HOME: "relative", XDG_STATE_HOME: "relative" },
      code: 0,
    },
    { name: "with an XDG_STATE_HOME that is a file", args: ENQUEUE, env: { XDG_STATE_HOME: "/etc/passwd" }, code: 74 },
    {
      name: "with variables of nonsense for ack",
      args: ["ack"],
      env: { OUTBOX_ID: "\u001b[2J", OUTBOX_ACK_TOKEN: "x".repeat(100_000) },
      code: 1,
      said: /\\x1b\[2J/,
    },
    { name: "with bytes that are no UTF-8 in a variable", sh: `OUTBOX_DB="$(printf 'a\\377.db')" outbox ${TO}`, code: 65 },
    {
      name: "with 5,000 variables",
      args: ["ls"],
      env: Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`V${n}`, "x".repeat(100)])),
      code: 0,
    },
    {
      name: "with variables named like what objects inherit",
      args: ["ls"],
      env: { __proto__x: "1", constructor: "x", toString: "y", hasOwnProperty: "z" },
      code: 0,
    },
  ]);
});

describe("a directory", () => {
  hostile([
    // The runtime ends there before anything of ours runs: README says so.
    { name: "that was deleted", sh: `mkdir gone; cd gone; rmdir ../gone; outbox ${TO}`, code: 1, said: /directory was deleted/ },
    {
      name: "with files that a runtime would run",
      args: ["ls"],
      before: (place) => evil(place.home),
      code: 0,
      after: (place) => expect(existsSync(place.file("EVIL"))).toBeFalse(),
    },
    {
      name: "with files that a runtime would run, below which commands start",
      args: ["run", "--once"],
      before: (place) => (evil(place.home), void place.settings({ dispatch: { notify_template: ["/bin/sh", "-c", 'test -z "$EVIL"'] } })),
      code: 0,
      stdout: /^$/,
      said: DIED,
      changes: true,
      after: (place) => expect(existsSync(place.file("EVIL"))).toBeFalse(),
    },
  ]);
});

describe("descriptors and limits", () => {
  hostile([
    { name: "no stdin, stdout and stderr", sh: `outbox ${TO} <&- >&- 2>&-; echo $?`, code: 0, stdout: /^(0|74)\n$/, stores: 1 },
    { name: "no stdin and stdout, ls", sh: "outbox ls <&- >&-", code: 0 },
    { name: "stdout is full", sh: `outbox ${TO} >/dev/full`, code: 74, stdout: /^$/, stores: 1 },
    {
      name: "stdout is full, show",
      sh: "outbox show 1 >/dev/full",
      code: 74,
      said: /^outbox: cannot write to stdout: no space left on the device\n$/,
    },
    {
      name: "stdout is full, help",
      sh: "outbox --help >/dev/full",
      code: 74,
      said: /^outbox: cannot write to stdout: no space left on the device\n$/,
    },
    {
      name: "stdout is full, version",
      sh: "outbox version >/dev/full",
      code: 74,
      said: /^outbox: cannot write to stdout: no space left on the device\n$/,
    },
    {
      name: "stdout is open for reading only",
      sh: "outbox ls 1</dev/null",
      code: 74,
      said: /^outbox: cannot write to stdout: it is not open for that\n$/,
    },
    { name: "the reader of stdout has gone, help", sh: "(outbox --help; echo $? >&2) | true", code: 0, said: /^0\n$/ },
    { name: "the reader of stderr has gone", sh: "(outbox nonsense; echo $?) 2>&1 >/dev/null | true", code: 0 },
    {
      name: "12 descriptors",
      sh: `ulimit -n 12; outbox ${TO}`,
      code: [0, 74],
      said: /^(outbox: [^\n]+\n)?$/,
      stdout: /^([0-9a-f]{32}\n)?$/,
      stores: 1,
    },
    { name: "a file size of nothing", sh: `ulimit -f 0; outbox ${TO}`, code: 74 },
    { name: "no core files and a small stack", sh: `ulimit -c 0; ulimit -s 512; outbox ${TO}`, code: 0, stdout: ID, stores: 1 },
    {
      name: "umask 000",
      sh: `umask 000; rm -rf .local; outbox ${TO}`,
      code: 0,
      stdout: ID,
      changes: true,
      after: (place) =>
        expect([statSync(place.database).mode & 0o777, statSync(dirname(place.database)).mode & 0o777]).toEqual([0o600, 0o700]),
    },
    {
      name: "umask 777",
      sh: `umask 777; rm -rf .local; outbox ${TO}`,
      changes: true,
      code: [0, 77],
      stdout: /^([0-9a-f]{32}\n)?$/,
      said: /^(outbox: [^\n]+\n)?$/,
    },
    { name: "umask 777, init", sh: "umask 777; outbox init s.yaml", code: 0, said: /^$/ },
  ]);
});

/** Files that a runtime started here could read, and what they would do. */
function evil(home: string): void {
  const script = `require("node:fs").writeFileSync("${home}/EVIL", "");`;
  for (const name of ["evil.js", "evil.ts", "index.ts", "index.js"]) writeFileSync(`${home}/${name}`, script);
  writeFileSync(`${home}/bunfig.toml`, 'preload = ["./evil.ts"]\n[run]\nsilent = false\n');
  writeFileSync(`${home}/.env`, "EVIL=1\nOUTBOX_DB=evil.db\nOUTBOX_CONFIG=evil.yaml\n");
  writeFileSync(`${home}/.npmrc`, "ignore-scripts=false\n");
  writeFileSync(`${home}/package.json`, '{"imports":{"#x":"./evil.js"},"main":"evil.js"}');
  writeFileSync(`${home}/tsconfig.json`, '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}');
  for (const name of ["yaml", "valibot", "citty", "consola"]) {
    mkdirSync(`${home}/node_modules/${name}`, { recursive: true });
    writeFileSync(`${home}/node_modules/${name}/index.js`, script);
  }
}
