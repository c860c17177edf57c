/**
 * Everything that must hold before a commit, in one command: `bun run check`; `npm test` installs first. Types, lint, format
 * and documents, every test under test/ but test/system, and the build, whose binary the later tests run. All steps run,
 * whatever the earlier ones said; one that fails shows its output. The last line is `N passed, N failed`.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { sum, type Tally, tally } from "./tally.ts";

const root = join(import.meta.dir, "..");
const bun = process.execPath;
const OXLINT = "node_modules/oxlint/bin/oxlint";
const SOURCES = ["src/**/*.ts", "test/**/*.ts", "scripts/**/*.ts"];
/** A test that takes longer hangs. */
const TEST_TIMEOUT_MS = 20_000;
/** A step that takes longer hangs: all of them together should take less than two minutes. */
const STEP_TIMEOUT_MS = 300_000;

/**
 * What pays only in a process that lives for minutes, left out, takes a fifth of the work off: in tests the last, dearest compiler, more
 * than one thread to mark garbage, and to give memory back; in the Go of the checkers, garbage collection at each doubling.
 */
const SHORT_LIVED = { BUN_JSC_useFTLJIT: "0", BUN_JSC_numberOfGCMarkers: "1", MIMALLOC_PURGE_DELAY: "-1", GOGC: "400" };

/** What takes longest, in that order: begun last it would be alone at the end. What is not named here comes after it, as it is found. */
const LONGEST: readonly string[] = [
  "types, lint",
  "cli",
  "store",
  "test/docs",
  "sim",
  "unit",
  "cli/now",
  "crash/runners",
  "cli/waking",
  "cli/inbox",
  "cli/refused",
];

interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Set for a test run: its files and where it writes its report. */
  readonly tests?: { readonly files: readonly string[]; readonly report: string };
  /** It starts dist/outbox, so it waits for the build and is not run without one. */
  readonly needsBuild?: true;
}

interface Result {
  readonly ok: boolean;
  readonly tally: Tally;
}

const scratch = mkdtempSync(join(tmpdir(), "outbox-check-"));
/** Where the steps make their temporary files. */
const temporary = join(scratch, "tmp");
mkdirSync(temporary);
try {
  const place = ({ name }: Step): number => (LONGEST.includes(name) ? LONGEST.indexOf(name) : LONGEST.length);
  const results = await runAll([build(), ...[...looks(), ...testRuns()].toSorted((one, other) => place(one) - place(other))]);
  const { passed, failed } = sum([...results, litter()].map((result) => result.tally));
  process.exitCode = failed === 0 ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** Steps without tests. The tools run in this Bun, so that Node is not needed. */
function looks(): Step[] {
  return [
    // The linter has the compiler in it: what `tsc` would say is said here, and the program is parsed once.
    { name: "types, lint", command: [bun, OXLINT, "--type-check", "--type-aware", "--deny-warnings", "src", "test", "scripts"] },
    { name: "format", command: [bun, "fmt", "--no-script", "--check", ...SOURCES] },
    { name: "declarations", command: [bun, "scripts/types.ts", "--check"] },
    { name: "docs", command: [bun, "scripts/docs.ts", "--check"] },
  ];
}

function build(): Step {
  return { name: "build", command: [bun, "scripts/build.ts"] };
}

/**
 * One run for each directory of test/, found by looking, so that no test file can be forgotten; one for each file in test/ itself,
 * and for each that takes long.
 */
function testRuns(): Step[] {
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].toSorted();
  const byRun = Map.groupBy(files, runOf);
  // These need the machine, not only the project: `npm run test:system`.
  byRun.delete("system");
  const early = ["tidy", "unit", "store", "sim"];
  // Named, so that their absence is a failure; whatever else there is is run too.
  const named = [...early, "cli", "crash"];
  const names = [...named, ...[...byRun.keys()].filter((name) => !named.includes(name))];
  return names.map((name) => testRun(name, byRun.get(name) ?? [], early.includes(name)));
}

function runOf(file: string): string {
  const [, directory, name] = /^test\/(\w+)\/(.*)\.test\.ts$/.exec(file) ?? [];
  if (directory === undefined) return file === "test/tidy.test.ts" ? "tidy" : file.replace(".test.ts", "");
  return LONGEST.includes(`${directory}/${name}`) ? `${directory}/${name}` : directory;
}

function testRun(name: string, files: readonly string[], early: boolean): Step {
  const report = join(scratch, `${name.replace("/", "-")}.xml`);
  const command = [
    bun,
    "test",
    `--timeout=${TEST_TIMEOUT_MS}`,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
    ...files.map((file) => `./${file}`),
  ];
  return { name, command, tests: { files, report }, ...(early ? {} : { needsBuild: true }) };
}

/** Runs the steps in order, one more at a time than there are cores, since some wait; what needs the build starts after it. */
async function runAll(steps: readonly Step[]): Promise<Result[]> {
  const built = Promise.withResolvers<boolean>();
  const waiting = [...steps];
  const results: Result[] = [];
  const worker = async (): Promise<void> => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      const result = step.needsBuild && !(await built.promise) ? notRun(step) : await runStep(step);
      if (step.name === "build") built.resolve(result.ok);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, worker));
  return results;
}

/** Fails when a step left a temporary file behind: on a machine that runs the tests each day they become thousands. */
function litter(): Result {
  const left = readdirSync(temporary);
  if (left.length === 0) return { ok: true, tally: { passed: 0, failed: 0 } };
  console.log(`FAILED  temporary files: ${left.length} left behind: ${left.slice(0, 5).join(", ")}`);
  return { ok: false, tally: { passed: 0, failed: 1 } };
}

function notRun(step: Step): Result {
  console.log(`FAILED  ${step.name}: not run, because the build failed`);
  return { ok: false, tally: { passed: 0, failed: Math.max(1, step.tests?.files.length ?? 0) } };
}

async function runStep(step: Step): Promise<Result> {
  const started = performance.now();
  const output = join(scratch, `${step.name.replace("/", "-")}.txt`);
  // Without a file `bun test` would run all there are, and pass.
  const nothing = step.tests?.files.length === 0;
  const exitCode = nothing ? 1 : await run(step, output);
  const counted =
    step.tests === undefined
      ? { passed: 0, failed: exitCode === 0 ? 0 : 1 }
      : tally({ exitCode, report: read(step.tests.report), files: step.tests.files });
  const ok = counted.failed === 0;
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  const count = step.tests === undefined ? "" : `, ${counted.passed} passed${ok ? "" : `, ${counted.failed} failed`}`;
  console.log(`${ok ? "ok    " : "FAILED"}  ${step.name} (${seconds} s${count})`);
  if (!ok)
    console.log(`${nothing ? "there is no test file" : (read(output)?.trimEnd() ?? "")}\n--- end of ${step.name}, exit code ${exitCode}`);
  return { ok, tally: counted };
}

/** Runs a command with its output into a file: a pipe would be held open by whatever a failing test left running. */
async function run({ command }: Step, output: string): Promise<number> {
  const fd = openSync(output, "w");
  try {
    const child = Bun.spawn([...command], {
      cwd: root,
      env: { ...environment(), ...SHORT_LIVED },
      stdio: ["ignore", fd, fd],
      timeout: STEP_TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    return await child.exited;
  } finally {
    closeSync(fd);
  }
}

/** The caller's, without what would point a test at the caller's own outbox, and with a place for temporary files of our own. */
function environment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("OUTBOX_"));
  return { ...Object.fromEntries(own), TZ: "UTC", TMPDIR: temporary };
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
