/** What can stand where the database should be, and what a path can look like. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workstation } from "../../cli/running.ts";
import { type Case, ENQUEUE, hostile, ID } from "../../hostile/cases.ts";

/** Spoils the usual database, and tells what each command that opens one says of it. */
function spoilt(name: string, spoil: (place: Workstation) => void, code: number, said = /^outbox: [^\n]+; [^\n]+\n$/): readonly Case[] {
  const commands = [ENQUEUE, ["ls"], ["run", "--once"], ["migrate"]];
  return commands.map((args) => ({
    name: `${name}: ${args.slice(0, 1).join(" ")}`,
    args,
    before: (place) => (place.settings({ dispatch: { notify_template: ["/bin/true"] } }), spoil(place)),
    code,
    said,
  }));
}

function write(place: Workstation, content: string | Uint8Array): void {
  writeFileSync(place.database, content, { mode: 0o600 });
}

/** Puts other bytes at a place of the file. */
function overwrite(place: Workstation, at: number, bytes: Uint8Array): void {
  const whole = readFileSync(place.database);
  whole.set(bytes, at);
  write(place, whole);
}

const noise = (length: number): Uint8Array => Uint8Array.from({ length }, (_, n) => (n * 197 + 31) % 256);
const sql = (place: Workstation, ...statements: readonly string[]): void => {
  using db = new Database(place.database);
  for (const statement of statements) db.run(statement);
};

describe("a database", () => {
  hostile([
    ...spoilt("of noise", (place) => write(place, noise(8_192)), 74),
    ...spoilt("of which the header is noise", (place) => overwrite(place, 0, noise(100)), 74),
    ...spoilt("of which the first page is noise", (place) => overwrite(place, 100, noise(3_996)), 74),
    ...spoilt("that is cut in the first page", (place) => truncateSync(place.database, 700), 74),
    ...spoilt("of another program", (place) => (rmSync(place.database), sql(place, "CREATE TABLE t (x)")), 74),
    ...spoilt(
      "whose version is a text",
      (place) =>
        sql(
          place,
          "DROP TABLE dispatch_schema",
          "CREATE TABLE dispatch_schema (version)",
          "INSERT INTO dispatch_schema VALUES ('9; DROP')",
        ),
      74,
    ),
    ...spoilt("whose version is gone", (place) => sql(place, "DELETE FROM dispatch_schema"), 74),
    ...spoilt("whose version is negative", (place) => sql(place, "UPDATE dispatch_schema SET version = -1"), 74),
    ...spoilt("that is newer by far", (place) => sql(place, "UPDATE dispatch_schema SET version = 9007199254740991"), 78),
    { name: "that is cut in the middle: ls", args: ["ls"], before: (place) => truncateSync(place.database, 40_960), code: 74 },
    { name: "that is cut in the middle: enqueue", args: ENQUEUE, before: (place) => truncateSync(place.database, 40_960), code: 74 },
    {
      name: "of which every page but the first is noise: ls",
      args: ["ls"],
      before: (place) => overwrite(place, 4_096, noise(100_000)),
      code: 74,
    },
    {
      name: "of which every page but the first is noise: enqueue",
      args: ENQUEUE,
      before: (place) => overwrite(place, 4_096, noise(100_000)),
      code: 74,
    },
    {
      name: "of which every page but the first is noise: run",
      args: ["run", "--once"],
      before: (place) => (place.settings({}), overwrite(place, 4_096, noise(100_000))),
      code: 74,
      said: /^(outbox: [^\n]+; [^\n]+\n){2}$/,
    },
    {
      name: "with a log of noise",
      args: ENQUEUE,
      before: (place) => writeFileSync(`${place.database}-wal`, noise(70_000)),
      code: 0,
      stdout: ID,
      stores: 1,
    },
    {
      name: "with an index of the log that is noise",
      args: ENQUEUE,
      before: (place) => writeFileSync(`${place.database}-shm`, noise(32_768)),
      code: 0,
      stdout: ID,
      stores: 1,
    },
    {
      name: "with a journal of noise",
      args: ENQUEUE,
      before: (place) => writeFileSync(`${place.database}-journal`, noise(4_096)),
      code: 0,
      stdout: ID,
      stores: 1,
    },
    { name: "with a directory for its log", args: ENQUEUE, before: (place) => mkdirSync(`${place.database}-wal`), code: [74, 77] },
    {
      name: "with a directory for the index of its log",
      args: ENQUEUE,
      before: (place) => mkdirSync(`${place.database}-shm`),
      code: [74, 77],
    },
    { name: "that is empty", args: ENQUEUE, before: (place) => write(place, ""), code: 0, stdout: ID, stores: 1 },
    { name: "that is empty, for those who look", args: ["ls"], before: (place) => write(place, ""), code: 1 },
    { name: "of two bytes", args: ENQUEUE, before: (place) => write(place, "xx"), code: 74 },
    { name: "that is a pipe, for those who hand in", sh: `mkfifo p; outbox ${ENQUEUE.join(" ")} --db p`, code: 74 },
    {
      name: "that is a socket's name",
      args: ["ls"],
      before: (place) => (rmSync(place.database), Bun.listen({ unix: place.database, socket: { data() {} } }).stop()),
      code: [1, 74],
    },
    { name: "that is /dev/zero", args: [...ENQUEUE, "--db", "/dev/zero"], code: 74 },
    { name: "that is the program itself", sh: `outbox ${ENQUEUE.join(" ")} --db "$(command -v outbox)"`, code: [74, 77] },
    {
      name: "that is the settings file",
      sh: `mkdir -m 700 -p .config/outbox; echo '# x' >.config/outbox/settings.yaml; chmod 600 .config/outbox/settings.yaml; outbox ${ENQUEUE.join(" ")} --db .config/outbox/settings.yaml`,
      code: 74,
    },
    {
      name: "behind a link",
      args: ENQUEUE,
      before: (place) => (renameSync(place.database, place.file("real.db")), symlinkSync(place.file("real.db"), place.database)),
      code: 0,
      stdout: ID,
      stores: 1,
    },
    {
      name: "behind a link to nothing",
      args: [...ENQUEUE, "--db", "link"],
      before: (place) => symlinkSync("nothing", place.file("link")),
      code: 77,
    },
    {
      name: "behind a link to itself",
      args: [...ENQUEUE, "--db", "link"],
      before: (place) => symlinkSync("link", place.file("link")),
      code: [74, 77],
    },
    { name: "behind a chain of links that ends in nothing", sh: `ln -s b a; ln -s c b; outbox ${ENQUEUE.join(" ")} --db a`, code: 77 },
    { name: "below a file", args: [...ENQUEUE, "--db", "/etc/passwd/a.db"], code: 74 },
    { name: "in a directory that is missing", args: [...ENQUEUE, "--db", "no/such/a.db"], code: 74 },
    { name: "in a directory that is missing, for those who look", args: ["ls", "--db", "no/such/a.db"], code: 1 },
    {
      name: "in a directory that everybody writes is made all the same",
      args: [...ENQUEUE, "--db", "wide/a.db"],
      before: (place) => (mkdirSync(place.file("wide")), chmodSync(place.file("wide"), 0o777)),
      code: 0,
      stdout: ID,
    },
    {
      name: "of which the temporary tables are many",
      args: ["ls", "--limit", "0"],
      before: (place) => sql(place, "CREATE VIEW zzz AS SELECT 1"),
      code: 0,
    },
    {
      name: "whose rows were changed by hand past every check",
      args: ["ls", "--json"],
      before: (place) =>
        sql(
          place,
          "PRAGMA ignore_check_constraints = ON",
          "DROP TRIGGER dispatch_moves",
          "UPDATE dispatch_outbox SET status = 'x', attempt = -5, next_attempt_at = 1e300, metadata = '{' WHERE seq = 1",
        ),
      code: [0, 74],
      said: /^(outbox: [^\n]+\n)?$/,
    },
  ]);
});

/** As the log of `run` says it. */
const TOO_LONG = / error [^\n]+; check the path and its directories\n$/;

describe("a path", () => {
  const made = (name: string, path: string): Case => ({
    name,
    args: [...ENQUEUE, "--db", path],
    code: 0,
    stdout: ID,
    before: (place) => mkdirSync(join(place.file(path), ".."), { recursive: true }),
  });
  hostile([
    made("with blanks", " a b .db"),
    made("with a line break", "a\nb.db"),
    made("with a question mark", "a?mode=memory"),
    made("with a hash", "a#b.db"),
    made("with a per cent sign", "a%00b%2fc.db"),
    made("with quotes", "a'b\"c.db"),
    made("with a backslash", "a\\b.db"),
    made("with a shell's words", "$(id)`id`;|&.db"),
    made("with an escape sequence", "\u001b[31m.db"),
    made("with emoji", "\u{1f600}.db"),
    made("that begins with a dash", "./-a.db"),
    made("of 255 bytes in a name, less the companions", "n".repeat(240)),
    made("with dots", "./x/../x/./a.db"),
    made("that ends like a companion", "a.db-wal"),
    { name: "with a name of 256 bytes", args: [...ENQUEUE, "--db", "n".repeat(256)], code: 74 },
    { name: "with a name whose companions are too long", args: [...ENQUEUE, "--db", "n".repeat(253)], code: 74 },
    {
      name: "longer than SQLite opens",
      args: [...ENQUEUE, "--db", `${`${"d".repeat(200)}/`.repeat(3)}a.db`],
      before: (place) => mkdirSync(place.file(`${"d".repeat(200)}/`.repeat(3)), { recursive: true }),
      code: 74,
      said: /its path has \d+ bytes; SQLite opens up to 504; /,
      after: (place) => expect(readdirSync(place.file(`${"d".repeat(200)}/`.repeat(3)))).toEqual([]),
    },
    { name: "of 5,000 bytes", args: [...ENQUEUE, "--db", "a/".repeat(2_500)], code: [2, 74] },
    { name: "of 5,000 bytes, for run", args: ["run", "--db", "a/".repeat(2_500)], code: 74, said: TOO_LONG },
    { name: "with a name of 256 bytes, for run", args: ["run", "--db", "n".repeat(256)], code: 74, said: TOO_LONG },
    {
      name: "below a link that leads back to itself, for run",
      args: ["run", "--db", "loop/a.db"],
      before: (place) => symlinkSync("loop", place.file("loop")),
      code: 77,
      said: / error database \S+ is a symlink to nowhere; [^\n]+\n$/,
    },
    { name: "that is a directory's", args: [...ENQUEUE, "--db", "."], code: 74 },
    { name: "that ends in a slash", args: [...ENQUEUE, "--db", "new/"], code: [2, 74] },
    { name: "that is an address", args: [...ENQUEUE, "--db", "file:///a.db"], code: 2 },
    { name: "with an escape sequence, told", args: ["ls", "--db", "\u001b[2J\u202e.db"], code: 1, said: /\\x1b\[2J\\u\{202e\}/ },
    { name: "of another user's home", args: ["ls", "--db", "~nobody/a.db"], code: 1 },
  ]);
});
