/**
 * Proof by torture: the built program killed before every call that writes, its disk without power at every moment, every call to
 * its files refused, the disk full, its runners raced and frozen. `npm run torture` takes under half an hour on two cores, `npm run
 * torture:quick` under five minutes. A missing tool is an error. Figures go to dist/torture.json.
 */
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crashes } from "../test/torture/crashes.ts";
import { disks } from "../test/torture/disks.ts";
import { power } from "../test/torture/power.ts";
import { lineOf, type Part, part, show } from "../test/torture/report.ts";
import { races } from "../test/torture/races.ts";
import { faketime } from "./faketime.ts";

const root = join(import.meta.dir, "..");
/** `wanted` are parts by name, where not all are. A word that is not known is refused: half an hour is long to find out. */
const {
  values: { quick },
  positionals: wanted,
} = parseArgs({ options: { quick: { type: "boolean", default: false } }, allowPositionals: true });

/** What must be there, and how to get it. */
const NEEDED: readonly (readonly [what: string, there: boolean, advice: string])[] = [
  ["Linux", process.platform === "linux", "run it there: it mounts small disks and traces system calls"],
  ["root", process.getuid?.() === 0, "run it as root, in a machine or container of its own"],
  ["strace", Bun.which("strace") !== null, "install the package strace"],
  ["libfaketime", faketime() !== null, "install the package libfaketime, or name its library in LIBFAKETIME"],
  ["dist/outbox", Bun.file(join(root, "dist", "outbox")).size > 0, "run npm run build"],
];

const PARTS: Readonly<Record<string, (scratch: string) => Promise<Omit<Part, "name" | "seconds">>>> = {
  crash: (scratch) => crashes(scratch, quick ? { every: 20, randomly: 60, atOnce: 3 } : { every: 1, randomly: 500, atOnce: 3 }),
  disk: (scratch) => disks(scratch, quick ? { every: 20, atOnce: 3 } : { every: 1, atOnce: 3 }),
  power: (scratch) => power(scratch, quick ? 8_000 : 110_000),
  race: (scratch) => races(scratch, quick ? { enqueues: 40, freezes: 2 } : { enqueues: 200, freezes: 8 }),
};

const missing = NEEDED.filter(([, there]) => !there);
for (const [what, , advice] of missing) console.error(`torture: ${what} is missing; ${advice}`);
const unknown = wanted.filter((name) => !Object.hasOwn(PARTS, name));
for (const name of unknown) console.error(`torture: there is no part ${name}; name some of ${Object.keys(PARTS).join(" ")}`);
if (missing.length > 0 || unknown.length > 0) process.exit(1);

// In memory: what is killed leaves the machine alone, so nothing needs to reach a platter, and nothing wears one.
const scratch = mkdtempSync(join(tmpdir(), "outbox-torture-"));
mount(["-t", "tmpfs", "-o", "size=4g,mode=700", "tmpfs", scratch]);
const done: Part[] = [];
// Whatever ends this process early has proved nothing.
process.exitCode = 1;
let finished = false;
process.on("exit", () => {
  if (!finished) console.error("torture: FAILED, it ended before its end");
  if (Bun.spawnSync(["umount", "-l", scratch]).exitCode === 0) rmdirSync(scratch);
  else console.error(`torture: ${scratch} is still mounted; umount it`);
});
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    console.error(`torture: ended by ${signal}`);
    process.exit(1);
  });
for (const [name, work] of Object.entries(PARTS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const result = await part(name, () => work(scratch));
  show(result);
  done.push(result);
}
await Bun.write(
  join(root, "dist", "torture.json"),
  `${JSON.stringify({ date: new Date().toISOString().slice(0, 10), quick, parts: done.map((part) => figures(part)) }, null, 2)}\n`,
);
const violations = done.reduce((sum, { violations }) => sum + violations.length, 0);
console.log(`torture: ${violations === 0 ? "passed" : "FAILED"}, ${violations} violations`);
finished = true;
process.exit(violations === 0 ? 0 : 1);

function mount(options: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["mount", ...options]);
  if (exitCode === 0) return;
  console.error(`torture: cannot mount a disk in memory: ${stderr.toString().trim()}; run it where root may mount`);
  process.exit(1);
}

/** What the README may quote. */
function figures({ name, counts, violations, seconds, ...rest }: Part): object {
  const part = { name, counts, violations, seconds, ...rest };
  return { part: name, ...counts, violations: violations.length, seconds: Math.round(seconds), line: lineOf(part) };
}
