/**
 * The tests that need the machine: root, strace to count fsyncs, libfaketime to move the clock, python3 and the sqlite3 shell to use
 * the SQL door, promtool to read the metrics. `npm run test:system`. They are apart from `npm test`, which needs nothing; here a
 * missing tool is an error, so that no test passes by not running.
 */
import { join } from "node:path";
import { faketime } from "./faketime.ts";

const root = join(import.meta.dir, "..");

/** What must be there, and how to get it. */
const NEEDED: readonly (readonly [what: string, there: boolean, advice: string])[] = [
  ["root", process.getuid?.() === 0, "run it as root, in a machine or container of its own"],
  ["strace", Bun.which("strace") !== null, "install the package strace"],
  ["libfaketime", faketime() !== null, "install the package libfaketime, or name its library in LIBFAKETIME"],
  ["python3", Bun.which("python3") !== null, "install the package python3"],
  ["sqlite3", Bun.which("sqlite3") !== null, "install the package sqlite3"],
  ["promtool", Bun.which("promtool") !== null, "install the package prometheus"],
  ["dist/outbox", Bun.file(join(root, "dist", "outbox")).size > 0, "run npm run build"],
];

const missing = NEEDED.filter(([, there]) => !there);
for (const [what, , advice] of missing) console.error(`test:system: ${what} is missing; ${advice}`);
if (missing.length > 0) process.exit(1);

const env = { ...process.env, TZ: "UTC", LIBFAKETIME: faketime() ?? "" };
const tests = Bun.spawnSync([process.execPath, "test", "--timeout", "60000", "./test/system"], {
  cwd: root,
  env,
  stdio: ["ignore", "inherit", "inherit"],
});
process.exit(tests.exitCode);
