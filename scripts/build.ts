/**
 * Builds dist/outbox, the executable for this machine, and runs it once. `npm run build`; `npm start` and the check call it.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { compile } from "./compile.ts";
import { version } from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");
const target = join(root, "dist", "outbox");

mkdirSync(join(root, "dist"), { recursive: true });
// Built aside and renamed, so that a test never starts half a file and a running binary does not block the build. The
// name stays `outbox`: it is embedded, and equal sources then make an equal file.
const aside = mkdtempSync(join(root, "dist", ".build-"));
try {
  const built = join(aside, "outbox");
  compile("src/main.ts", built, [`--define=OUTBOX_VERSION=${JSON.stringify(version)}`]);
  proveItRuns(built);
  renameSync(built, target);
  console.log(`dist/outbox ${version}, ${Math.round(Bun.file(target).size / 1_000_000)} MB`);
} catch (error) {
  console.error(`build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(aside, { recursive: true, force: true });
}

/** A build can succeed and leave a binary that dies at its start, so it is run. */
function proveItRuns(binary: string): void {
  const run = Bun.spawnSync([binary, "version"], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const said = run.stdout.toString().trim();
  if (run.exitCode === 0 && said.split(" ").at(-1) === version) return;
  throw new Error(`\`outbox version\` should print ${version}; it printed "${said}", exit ${run.exitCode}\n${run.stderr.toString()}`);
}
