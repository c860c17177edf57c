/**
 * What an enqueue costs: `npm run bench`. Both sides of each ratio come from the same run, in turns; absolute times drift
 * between runs. Needs the sqlite3 shell for its side and strace for the count of fsyncs; says so when one is missing.
 */
import { Database } from "bun:sqlite";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROUNDS = Number(Bun.argv[2] ?? 60);
const root = join(import.meta.dir, "..");
const outbox = join(root, "dist", "outbox");
const place = mkdtempSync(join(tmpdir(), "outbox-bench-"));
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: place, OUTBOX_CONFIG: join(place, "settings.yaml") };

type Side = { readonly name: string; readonly argv: readonly string[] };

try {
  writeFileSync(env.OUTBOX_CONFIG, settings(), { mode: 0o600 });
  const empty: Side = { name: "empty compiled program", argv: [compileEmpty()] };
  const enqueue = (db: string): Side => ({
    name: "outbox enqueue",
    argv: [outbox, "enqueue", "--db", db, "--kind", "k", "--to", "t", "--body", '{"n":1}'],
  });
  const shell: Side = { name: "sqlite3, the same two inserts", argv: sqliteShell() };
  const sides = Bun.which("sqlite3") === null ? [empty] : [empty, shell];
  if (sides.length === 1) console.log("sqlite3 is not installed: its side is left out");

  const held = join(place, "held.db");
  run(enqueue(held).argv);
  const runner = Bun.spawn([outbox, "run", "--db", held], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  await Bun.sleep(500);
  report("a run holds the database", [enqueue(held), ...sides]);
  fsyncs("fsyncs, a run holds the database", enqueue(held).argv);
  runner.kill();
  await runner.exited;

  const alone = join(place, "alone.db");
  run(enqueue(alone).argv);
  report("nobody else, a 10-line settings file", [enqueue(alone), ...sides]);
  fsyncs("fsyncs, nobody else", enqueue(alone).argv);
  memory([enqueue(alone), empty]);
} finally {
  rmSync(place, { recursive: true, force: true });
}

/** Ten lines, as people write them. */
function settings(): string {
  return `dispatch:
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
}

function compileEmpty(): string {
  const directory = join(place, "empty");
  mkdirSync(directory);
  const source = join(directory, "empty.ts");
  writeFileSync(source, `console.log("done");\n`);
  const target = join(directory, "empty");
  run([process.execPath, "build", source, "--compile", "--minify", "--bytecode", "--format=esm", `--outfile=${target}`]);
  return target;
}

function sqliteShell(): string[] {
  const file = join(place, "shell.db");
  const db = new Database(file, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)");
  db.run("CREATE TABLE b (id INTEGER PRIMARY KEY, t TEXT)");
  db.close();
  const text = "x".repeat(300);
  return [
    "sqlite3",
    file,
    `PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; BEGIN IMMEDIATE; INSERT INTO a(t) VALUES('${text}'); INSERT INTO b(t) VALUES('${text}'); COMMIT; SELECT 1`,
  ];
}

function run(argv: readonly string[]): void {
  const done = Bun.spawnSync([...argv], { env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  if (done.exitCode !== 0) throw new Error(`${argv.join(" ")} ended with ${done.exitCode}: ${done.stderr.toString()}`);
}

/** Medians of all sides, taken in turns, and the ratio of the first to each other. */
function report(title: string, sides: readonly Side[]): void {
  const times = sides.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, side] of sides.entries()) {
      const started = performance.now();
      run(side.argv);
      times[at]?.push(performance.now() - started);
    }
  const medians = times.map((all) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN);
  console.log(`\n${title} (${ROUNDS} rounds, medians)`);
  for (const [at, side] of sides.entries()) {
    const own = medians[at] ?? Number.NaN;
    console.log(
      `  ${side.name.padEnd(34)} ${own.toFixed(2).padStart(7)} ms${at === 0 ? "" : `   outbox is ${((medians[0] ?? 0) / own).toFixed(2)}x`}`,
    );
  }
}

function fsyncs(title: string, argv: readonly string[]): void {
  if (Bun.which("strace") === null) return console.log(`${title}: strace is not installed`);
  const trace = join(place, "trace");
  run(["strace", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync", ...argv]);
  const count = readFileSync(trace, "utf8")
    .split("\n")
    .filter((line) => / f(data)?sync\(/.test(line)).length;
  console.log(`  ${title}: ${count}`);
}

function memory(sides: readonly Side[]): void {
  const peaks = sides.map(({ argv }) => {
    const child = Bun.spawnSync([...argv], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return (child.resourceUsage?.maxRSS ?? 0) / 1_048_576;
  });
  console.log(`\npeak memory`);
  for (const [at, side] of sides.entries()) console.log(`  ${side.name.padEnd(34)} ${(peaks[at] ?? 0).toFixed(1).padStart(7)} MiB`);
}
