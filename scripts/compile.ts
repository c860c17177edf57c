/** How an executable is made of sources: the flags of outbox itself, and of the empty program that the benchmark holds it against. */
import { join } from "node:path";

const root = join(import.meta.dir, "..");

/** How many times more often than usual code must run before it is compiled. `commands/run.ts` takes it back: a runner stays. */
const RELUCTANT = 100;

const FLAGS: readonly string[] = [
  "--compile",
  "--minify",
  // Bytecode halves the start. It needs `esm`: in the other format a failure leaves a broken file and exit code 0.
  "--bytecode",
  "--format=esm",
  // A command that hands in lives for some milliseconds: what the threads of the JIT make meanwhile comes too late for it.
  `--compile-jit-policy=${RELUCTANT}`,
  // Without it everything behind an import() would be loaded at the start.
  "--splitting",
  // A binary must not take code or variables from the directory that it is started in.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

/** @throws Error with what the bundler said */
export function compile(source: string, outfile: string, more: readonly string[] = []): void {
  const command = [process.execPath, "build", source, `--outfile=${outfile}`, ...FLAGS, ...more];
  const run = Bun.spawnSync(command, { cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  if (run.exitCode !== 0) throw new Error(`\`bun build\` failed\n${run.stdout.toString()}${run.stderr.toString()}`);
}
