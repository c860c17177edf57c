/**
 * What outbox costs beside what it could cost: `npm run bench`. Every figure stands beside a yardstick of the same minute, because
 * absolute times drift between runs and machines; a goal is a ratio or a count. A yardstick that is not on this machine (the sqlite3
 * shell, strace, the peers) is named as missing. It is no test: a busy machine misses goals that a quiet one meets.
 *
 *   npm run bench                          all goals; growth in its short form
 *   npm run bench -- --only 1,2,4          these alone
 *   npm run bench -- --growth              growth to 5 million rows, and its picture: minutes and 15 GB more
 *   npm run bench -- --only 8 --growth --sizes 1000,100000
 *   --rounds N (30)   --json   --save FILE (what --json prints)   --svg FILE (dist/growth.svg)
 */
import { writeFileSync } from "node:fs";
import { arch, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { blocked } from "./bench/claim.ts";
import { commits } from "./bench/commits.ts";
import { crowd, losses } from "./bench/crowd.ts";
import { drain } from "./bench/drain.ts";
import { type Growth, growth, growthLines, SIZES } from "./bench/growth.ts";
import { picture } from "./bench/picture.ts";
import { benchPlace, type Place } from "./bench/place.ts";
import { isMet, type Line, table } from "./bench/report.ts";
import { starts } from "./bench/start.ts";
import { waking } from "./bench/wake.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "30" },
    only: { type: "string" },
    growth: { type: "boolean", default: false },
    sizes: { type: "string" },
    save: { type: "string" },
    svg: { type: "string", default: join(import.meta.dir, "..", "dist", "growth.svg") },
    json: { type: "boolean", default: false },
  },
});
const ROUNDS = Number(values.rounds);

interface Measurement {
  readonly goals: readonly number[];
  readonly measure: (place: Place) => readonly Line[] | Promise<readonly Line[]>;
}

const MEASUREMENTS: readonly Measurement[] = [
  { goals: [1, 2, 3, 4, 12], measure: (place) => starts(place, ROUNDS) },
  { goals: [5], measure: (place) => crowd(place, Math.ceil(ROUNDS / 6)) },
  { goals: [6], measure: (place) => drain(place, Math.ceil(ROUNDS / 6)) },
  { goals: [7], measure: (place) => commits(place, Math.ceil(ROUNDS / 3)) },
  { goals: [8], measure: grow },
  { goals: [9], measure: blocked },
  { goals: [10], measure: (place) => waking(place, 100) },
  { goals: [11], measure: (place) => losses(place, ROUNDS) },
];

let curves: Growth | null = null;
const asked = values.only?.split(",").map(Number) ?? MEASUREMENTS.flatMap(({ goals }) => goals);
const lines: Line[] = [];
using place = benchPlace();
for (const { goals, measure } of MEASUREMENTS) {
  if (!goals.some((goal) => asked.includes(goal))) continue;
  tell(`goal ${goals.join(", ")} ...`);
  lines.push(...(await tried(goals, () => measure(place))).filter(({ goal }) => asked.includes(goal)));
}
lines.sort((one, other) => one.goal - other.goal);
const raw = JSON.stringify(
  {
    ...where(),
    rounds: ROUNDS,
    lines: lines.map((line) => ({ ...line, met: isMet(line) })),
    ...(curves === null ? {} : { growth: curves }),
  },
  null,
  1,
);
if (values.save !== undefined) writeFileSync(values.save, `${raw}\n`);
console.log(values.json ? raw : `\n${table(lines)}`);

/** Where and when it was measured: what a later run must know to compare. */
function where(): object {
  const processors = cpus();
  const machine = `${processors.length} x ${processors[0]?.model ?? "unknown"} (${arch()}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`;
  return { date: new Date().toISOString().slice(0, 10), machine, bun: Bun.version };
}

/** One that fails is said, and keeps no other. */
async function tried(goals: readonly number[], measure: () => ReturnType<Measurement["measure"]>): Promise<readonly Line[]> {
  try {
    return await measure();
  } catch (error) {
    const note = `failed: ${error instanceof Error ? error.message : String(error)}`;
    return goals.map((goal) => ({ goal, what: "could not be measured", value: null, unit: "", atMost: 0, note }));
  }
}

function grow(here: Place): readonly Line[] {
  const sizes = values.sizes?.split(",").map(Number) ?? (values.growth ? SIZES : [1_000, 100_000]);
  const grown = growth(here, sizes, tell);
  curves = grown;
  if (values.growth) {
    writeFileSync(values.svg, picture(grown));
    tell(`the picture is ${values.svg}`);
  }
  return growthLines(grown);
}

/** To people, so that the answer of --json stays pure. */
function tell(text: string): void {
  console.error(text);
}
