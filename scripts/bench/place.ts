/** Where a benchmark works: a directory of its own with a settings file, databases, and the empty program that all is held against. */
import { Database } from "bun:sqlite";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, compilePlain } from "../compile.ts";
import type { Side } from "./rounds.ts";

export interface Place {
  readonly env: Readonly<Record<string, string>>;
  file(name: string): string;
  /** A command of outbox. */
  outbox(...args: readonly string[]): Side;
  /** `enqueue` of a small message. */
  enqueue(db: string): Side;
  /** The empty program, compiled as anybody does it: the yardstick. */
  readonly empty: Side;
  /** The same with the flags that outbox has for its own start: how much of it they are. */
  readonly emptyAsOurs: Side;
  /** Opens a database, does what a script says, closes it: what no program of Bun and SQLite can do without. Built as outbox. */
  bare(name: string, db: string, script: string): Side;
  /** Runs it to its end. @throws Error when it fails */
  run(side: Side): string;
  [Symbol.dispose](): void;
}

const binary = join(import.meta.dir, "..", "..", "dist", "outbox");

/** Ten lines, as people write them. */
const SETTINGS = `dispatch:
  notify_template: ["true", "{deliver_to}"]
  timeout: 10s
  max_attempts: 8
  backoff: { base: 30s, max: 30m, jitter: 0.2 }
  concurrency: 4
  routes:
    revival_ping: { notify_template: ["true"], timeout: 30s }
run: { interval: 30s, shutdown_grace: 10s }
log: { level: error, format: text }
`;

const BARE = `import { Database } from "bun:sqlite";
const [path, script] = process.argv.slice(2);
const db = new Database(path, { readwrite: true, create: false });
db.run(script);
db.close();
console.log("done");
`;

export function benchPlace(): Place {
  const root = mkdtempSync(join(tmpdir(), "outbox-bench-"));
  const file = (name: string): string => join(root, name);
  const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: root, OUTBOX_CONFIG: file("settings.yaml") };
  writeFileSync(env.OUTBOX_CONFIG, SETTINGS, { mode: 0o600 });
  mkdirSync(file("empty"));
  writeFileSync(file("empty/empty.ts"), `console.log("done");\n`);
  compilePlain(file("empty/empty.ts"), file("empty/empty"));
  compile(file("empty/empty.ts"), file("empty/as-ours"));
  writeFileSync(file("empty/bare.ts"), BARE);
  compile(file("empty/bare.ts"), file("empty/bare"));
  const side = (name: string, argv: readonly string[]): Side => ({ name, argv, env });
  return {
    env,
    file,
    outbox: (...args) => side(`outbox ${args[0]}`, [binary, ...args]),
    enqueue: (db) => side("outbox enqueue", [binary, "enqueue", "--db", db, "--kind", "k", "--to", "t", "--body", '{"n":1}']),
    empty: side("the empty program", [file("empty/empty")]),
    emptyAsOurs: side("the empty program, built as outbox", [file("empty/as-ours")]),
    bare: (name, db, script) => side(name, [file("empty/bare"), db, script]),
    run: ({ argv, env: own, name }) => {
      const done = Bun.spawnSync([...argv], { env: own, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      if (done.exitCode !== 0) throw new Error(`${name} ended with ${done.exitCode}: ${done.stderr.toString()}`);
      return done.stdout.toString();
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

const TEXT = "x".repeat(300);

/** The row and its history row, by the rules of our tables. */
const OURS = `INSERT INTO dispatch_outbox (id, kind, deliver_to, payload, next_attempt_at, created_at, updated_at)
  VALUES (lower(hex(randomblob(16))), 'k', 't', '{"text":"${TEXT}"}', 1900000000, 1800000000, 1800000000)`;

/** The sqlite3 shell writing that, durably, into a database like ours: same tables, same triggers. */
export function shellOnOurs(place: Place, db: string): Side {
  return shell(place, db, "sqlite3, the same two inserts", OURS);
}

/** The least program of Bun that does so. */
export function bareOnOurs(place: Place, db: string): Side {
  return place.bare("a bare program, the same two inserts", db, durably(OURS));
}

/** The same into two tables with nothing on them: what is left is starting, opening and syncing. */
export function shellOnPlain(place: Place, db: string): Side {
  const handle = new Database(db, { create: true });
  handle.run("PRAGMA journal_mode = WAL");
  handle.run("CREATE TABLE IF NOT EXISTS a (id INTEGER PRIMARY KEY, t TEXT)");
  handle.run("CREATE TABLE IF NOT EXISTS b (id INTEGER PRIMARY KEY, t TEXT)");
  handle.close();
  return shell(
    place,
    db,
    "sqlite3, two inserts into bare tables",
    `INSERT INTO a(t) VALUES('${TEXT}'); INSERT INTO b(t) VALUES('${TEXT}')`,
  );
}

function shell(place: Place, db: string, name: string, sql: string): Side {
  return { name, argv: ["sqlite3", db, `${durably(sql)}; SELECT 1`], env: place.env };
}

function durably(sql: string): string {
  return `PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; BEGIN IMMEDIATE; ${sql}; COMMIT`;
}
