/**
 * Hostile input for the built program, as tables of cases. Each case says which exit code it must come to and what it may store;
 * what no case may do, whatever its input, is looked at here: trouble is one sentence, nothing hangs, nothing grows without bound,
 * and no byte reaches a terminal that could move its cursor.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { EXIT_CODES } from "../../src/cli/exit.ts";
import { CONTROLS } from "../../src/core/visible.ts";
import { hostClock } from "../../src/host.ts";
import { inProcess } from "../cli/in_process.ts";
import { BINARY } from "../cli/outbox.ts";
import { Workstation } from "../cli/running.ts";
import { MESSAGES, writeDatabase } from "../fixtures/store/stages.ts";

/** Far above the largest input; a parser that copies what it reads a few times stays below. */
const MOST_BYTES = 400_000_000;
/** No case waits for anything: past this it hangs, also on a machine that is busy. */
const MOST_MS = 10_000;
/** A line is read by a person. */
const MOST_SAID = 4_096;

/** What only a program that fell over says. */
export const TRACE = /\n\s+at |\bError:|\$bunfs|\.[jt]s:\d|panic|Bun v|SQLITE_|this should not happen/;

export interface Case {
  readonly name: string;
  /** Arguments of the program; else `sh`, a line of sh with the program as `outbox`. */
  readonly args?: readonly string[];
  readonly sh?: string;
  readonly stdin?: string | Uint8Array;
  /** Only a process of its own can show it: it is about what a descriptor is, or how much memory there is. */
  readonly alone?: true;
  /** Added to a small environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it must come to; several where the reason stands beside it. */
  readonly code: number | readonly number[];
  /** What stderr must hold. Left out: silence with code 0, one sentence else. */
  readonly said?: RegExp;
  /** What stdout must be. Left out: anything with code 0, nothing else. */
  readonly stdout?: RegExp;
  /** How many messages are stored; 0 unless it says so. */
  readonly stores?: number;
  /** What is stored changes otherwise; `after` looks at it. */
  readonly changes?: true;
  /** Changes the place before. */
  readonly before?: (place: Workstation) => void;
  /** Looks at the place afterwards. */
  readonly after?: (place: Workstation, result: Came) => void;
}

export interface Came {
  readonly code: number | null;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/** The bytes of a database with a message in every stage of its life. */
const SEED = seed();

function seed(): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), "outbox-hostile-"));
  try {
    writeDatabase(join(directory, "outbox.db"), hostClock.now());
    return readFileSync(join(directory, "outbox.db"));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Past this, which is the most that one argument can hold, an input is in the way of memory's limits, and no longer only of our checks. */
const LARGE_BYTES = 131_072;
/** Of the other cases one in so many goes through the program, whatever it is about; the rest through the same code in this process. */
const PROGRAM_EVERY = 6;

/** Whether the program itself must be started for it. */
function needsProgram({ args = [], sh, stdin = "", alone, env }: Case): boolean {
  const size = args.reduce((sum, arg) => sum + Buffer.byteLength(arg), Buffer.byteLength(stdin));
  return sh !== undefined || alone === true || size > LARGE_BYTES || env !== undefined || args.includes("--config");
}

/** A test for each case, in a place of its own with messages in every status. */
export function hostile(cases: readonly Case[]): void {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  const own = cases.filter((each) => !needsProgram(each));
  const inside = new Set(own.filter((_, at) => at % PROGRAM_EVERY > 0));
  test.concurrent.each(cases)("$name", async (each) => {
    using place = new Workstation();
    mkdirSync(dirname(place.database), { recursive: true, mode: 0o700 });
    writeFileSync(place.database, SEED, { mode: 0o600 });
    each.before?.(place);
    const before = messages(place.database);
    const came = inside.has(each) ? await runInside(place, each) : await start(place, each);
    judge(each, came);
    const stored = each.stores ?? 0;
    const after = messages(place.database);
    if (each.changes === true) expect(after).not.toBeNull();
    else if (stored === 0) expect(after).toEqual(before);
    else expect(after?.length).toBe((before ?? []).length + stored);
    each.after?.(place, came);
  });
}

/** So many at a time that none waits long for a core: the time of a case is then its own. */
const AT_ONCE = availableParallelism() * 2;
const waiting: (() => void)[] = [];
let running = 0;

async function start(place: Workstation, each: Case): Promise<Came> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  running += 1;
  try {
    return await run(place, each);
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

async function run(place: Workstation, { args, sh, stdin, env }: Case): Promise<Came> {
  const command = sh === undefined ? [BINARY, ...(args ?? [])] : ["/bin/sh", "-c", sh];
  const child = Bun.spawn(command, {
    cwd: place.home,
    env: place.env({ PATH: `${dirname(BINARY)}:/usr/bin:/bin`, ...env }),
    stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
    timeout: MOST_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.bytes(), child.stderr.bytes()]);
  await child.exited;
  expect(child.resourceUsage()?.maxRSS ?? 0).toBeLessThan(MOST_BYTES);
  return { code: child.exitCode, stdout, stderr };
}

/** The same command line in this process: a start costs more than all that most cases come to. */
async function runInside(place: Workstation, { args = [], stdin }: Case): Promise<Came> {
  const { code, stdout, stderr } = await inProcess(args, { cwd: place.home, env: place.env(), stdin });
  return { code, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
}

function judge({ code, said, stdout: printed }: Case, came: Came): void {
  const stderr = new TextDecoder("utf-8", { fatal: true }).decode(came.stderr);
  const stdout = new TextDecoder("utf-8", { fatal: true }).decode(came.stdout);
  // One comparison shows in a failure what else was said.
  const allowed = typeof code === "number" ? [code] : code;
  if (!allowed.includes(came.code ?? -1))
    expect({ code: came.code, stdout: stdout.slice(0, 200), stderr: stderr.slice(0, 500) }).toEqual({
      code,
      stdout: "",
      stderr: "",
    } as never);
  expect(EXIT_CODES.map((each) => each.code)).toContain(came.code ?? -1);
  for (const text of [stdout, stderr]) expect(text.replaceAll("\n", "").match(CONTROLS)).toBeNull();
  expect(stderr).not.toMatch(TRACE);
  for (const line of stderr.split("\n")) expect(line.length).toBeLessThan(MOST_SAID);
  if (said !== undefined) expect(stderr).toMatch(said);
  else if (came.code === 0) expect(stderr).toBe("");
  // WHAT; HINT
  else expect(stderr).toMatch(/^outbox: [^\n]+; [^\n]+\n$/);
  if (printed !== undefined) expect(stdout).toMatch(printed);
  else if (came.code !== 0) expect(stdout).toBe("");
}

/** All that is in the database; null where there is none that can be read. */
function messages(path: string): readonly unknown[] | null {
  if (!existsSync(path) || readFileSync(path).subarray(0, 15).toString() !== "SQLite format 3") return null;
  try {
    using db = new Database(path, { readwrite: true, create: false });
    db.run("PRAGMA busy_timeout = 10000");
    return db.query("SELECT o.*, (SELECT count(*) FROM status_transitions) AS moves FROM dispatch_outbox o ORDER BY seq").all();
  } catch {
    return null;
  }
}

/** The flags that every enqueue needs. */
export const ENQUEUE = ["enqueue", "--kind", "k", "--to", "d"];
export const ID = /^[0-9a-f]{32}\n$/;
export { MESSAGES };
