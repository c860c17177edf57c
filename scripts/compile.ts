/** How an executable is made of sources: outbox itself, and the empty programs that the benchmark holds it against. */
import { join } from "node:path";

const root = join(import.meta.dir, "..");

/** How many times more often than usual code must run before it is compiled. `commands/run.ts` takes it back: a runner stays. */
const RELUCTANT = 100;

/** What every program can have. Bytecode halves the start; it needs `esm`: in the other format a failure leaves a broken file, exit 0. */
const PLAIN: readonly string[] = ["--compile", "--minify", "--bytecode", "--format=esm"];

const FLAGS: readonly string[] = [
  ...PLAIN,
  // A command that hands in lives for some milliseconds: what the threads of the JIT make meanwhile comes too late for it.
  `--compile-jit-policy=${RELUCTANT}`,
  // Without it everything behind an import() would be loaded at the start.
  "--splitting",
  // A binary must not take code or variables from the directory that it is started in.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

/** As outbox is made. @throws Error with what the bundler said */
export function compile(source: string, outfile: string, more: readonly string[] = []): void {
  build([source, `--outfile=${outfile}`, ...FLAGS, ...more]);
}

/** As anybody makes a program who only wants it to start soon. */
export function compilePlain(source: string, outfile: string): void {
  build([source, `--outfile=${outfile}`, ...PLAIN]);
}

function build(args: readonly string[]): void {
  const command = [process.execPath, "build", ...args];
  const run = Bun.spawnSync(command, { cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  if (run.exitCode !== 0) throw new Error(`\`bun build\` failed\n${run.stdout.toString()}${run.stderr.toString()}`);
}
