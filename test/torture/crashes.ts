/** The program killed: before every writing call of every scenario, and at random moments of a life. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hostClock } from "../../src/host.ts";
import { clockAt } from "./clock.ts";
import { broken, NOTHING, open } from "./laws.ts";
import { inTime, numbers, type Part, together } from "./report.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { BINARY, idsIn, Site } from "./site.ts";
import type { Stage } from "./stages.ts";
import { killedBefore, type Point, pointsOf, watched } from "./strace.ts";

export interface Effort {
  /** Every how many points of a scenario; 1 is all of them. */
  readonly every: number;
  /** Kills at random moments. */
  readonly randomly: number;
  /** Processes side by side. */
  readonly atOnce: number;
}

/** Later than every lease and every wait of a scenario. */
const LATER_S = 7_200;
/** A scenario without so many points is not seen by strace. */
const FEWEST_POINTS = 8;

export async function crashes(scratch: string, { every, randomly, atOnce }: Effort): Promise<Omit<Part, "name" | "seconds">> {
  const violations: string[] = [];
  let points = 0;
  for (const scenario of SCENARIOS) {
    const found = await killEverywhere(scratch, scenario, every, atOnce);
    points += found.points;
    violations.push(...found.violations.map((violation) => `${scenario.name}, ${violation}`));
  }
  const lives = await Promise.all([1, 2].map((seed) => killAnywhere(scratch, Math.ceil(randomly / 2), numbers(seed))));
  violations.push(...lives.flatMap((life) => life.violations));
  const kills = lives.reduce((sum, life) => sum + life.kills, 0);
  return { counts: { "kill points": points, "kills at random moments": kills, scenarios: SCENARIOS.length }, violations };
}

async function killEverywhere(
  scratch: string,
  scenario: Scenario,
  every: number,
  atOnce: number,
): Promise<{ points: number; violations: string[] }> {
  const model = Site.make(scratch, scenario.terms);
  try {
    const stage = await scenario.prepare(model);
    const all = await census(model, stage);
    const violations = all.length < FEWEST_POINTS ? [`only ${all.length} calls were seen`] : [];
    let points = 0;
    const last = new Map(all.map(({ call, nth }) => [call, nth]));
    await together(
      all.filter((_, at) => at % every === 0 || at === all.length - 1),
      atOnce,
      async (first) => {
        // A run need not be like the one that was counted: after its last call of a name the next one is tried, until none comes.
        for (let point = first, more = true; more; point = { ...point, nth: point.nth + 1 }) {
          const { killed, found } = await killedAt(model, stage, point);
          points += killed ? 1 : 0;
          violations.push(...found.map((what) => `before ${point.call} ${point.nth}: ${what}`));
          more = killed && point.nth >= (last.get(point.call) ?? 0);
        }
      },
    );
    return { points, violations };
  } finally {
    model.remove();
  }
}

/** The calls of one run that nothing disturbs. */
async function census(model: Site, { args, given }: Stage): Promise<Point[]> {
  const site = model.copy();
  try {
    const log = join(site.home, "calls");
    await site.run(args, { ...given, under: watched(log) });
    return pointsOf(readFileSync(log, "utf8"));
  } finally {
    site.remove();
  }
}

async function killedAt(model: Site, stage: Stage, point: Point): Promise<{ killed: boolean; found: string[] }> {
  const site = model.copy();
  try {
    const first = await site.run(stage.args, { ...stage.given, under: killedBefore(point) });
    const killed = first.signal === "SIGKILL" && !first.hung;
    const found = first.hung ? ["it hangs"] : await inTime(judge(site, stage, first.stdout));
    return { killed, found };
  } finally {
    site.remove();
  }
}

/** All that must hold after a crash: at once, when its caller asks again, and when everything has come to its end. */
export async function judge(site: Site, stage: Stage, printed: string): Promise<string[]> {
  const found: string[] = [];
  const answers = ["enqueue", "revive"].includes(stage.args[0] ?? "");
  const ids = [...(stage.ids ?? []), ...(answers ? idsIn(printed) : [])];
  const look = (when: string): void => {
    if (!existsSync(site.database)) {
      if (ids.length > 0) found.push(`${when}: the database is gone, and ${ids.length} ids were answered`);
      return;
    }
    const now = hostClock.now();
    found.push(...site.look((db) => broken(db, now, { ...NOTHING, ids })).map((what) => `${when}: ${what}`));
    if (site.rows().length === 0) return;
    found.push(...[...site.unclaimed(), ...(stage.holds?.(site) ?? [])].map((what) => `${when}: ${what}`));
  };
  look("after the kill");
  if (stage.again !== undefined) {
    const second = await site.run(stage.args, stage.given ?? {});
    if (second.code === 0 && answers) ids.push(...idsIn(second.stdout));
    found.push(...stage.again(second, site, printed));
  }
  if (stage.mend !== undefined) await site.run(stage.mend);
  found.push(...(await settle(site)));
  look("at the end");
  return found;
}

/** Runs with later and later clocks until every row has come to its end; whatever is left then never will. */
export async function settle(site: Site, rounds = 6): Promise<string[]> {
  site.commandsEnd(0);
  if (site.rows().length === 0) return [];
  for (let round = 1; round <= rounds; round += 1) {
    const { code, stderr } = await site.run(["run", "--once"], { env: clockAt(round * LATER_S) });
    if (code !== 0) return [`run --once afterwards: exit ${code}, ${stderr.trim()}`];
    if (open(site.rows()).length === 0) return [];
  }
  return open(site.rows());
}

/** One database that lives on while the programs that use it are killed. */
async function killAnywhere(scratch: string, wanted: number, random: () => number): Promise<{ kills: number; violations: string[] }> {
  const site = Site.make(scratch, { maxAttempts: 4 });
  const violations: string[] = [];
  const ids: string[] = [];
  const keys = new Map<string, Set<string>>();
  let kills = 0;
  try {
    const look = (): void =>
      void violations.push(
        ...site.look((db) => broken(db, hostClock.now(), { ...NOTHING, ids })),
        ...site.unclaimed(),
        ...[...keys].filter(([, own]) => own.size > 1).map(([key, own]) => `the key ${key} gave ${own.size} ids`),
      );
    const longest = await usualTimes(site);
    // Some end before they are killed; so many must not.
    for (let round = 0; kills < wanted && round < wanted * 4; round += 1) {
      site.commandsEnd(random() < 0.3 ? 1 : 0);
      const key = `key-${Math.floor(random() * Math.max(3, round / 3))}`;
      const keyed = random() < 0.6;
      const enqueues = random() < 0.55;
      const args = enqueues ? ["enqueue", "--kind", "ping", "--to", "seat-1", ...(keyed ? ["--dedup-key", key] : [])] : ["run", "--once"];
      const { killed, stdout } = await killedAfter(site, args, random() * longest * 1.1);
      kills += killed ? 1 : 0;
      const printed = enqueues ? idsIn(stdout) : [];
      ids.push(...printed);
      if (keyed) for (const id of printed) keys.set(key, (keys.get(key) ?? new Set()).add(id));
      if (round % 25 === 24) look();
      // Now and then what killed runners left is due again.
      if (round % 40 === 39) await site.run(["run", "--once"], { env: clockAt(60) });
    }
    violations.push(...(await settle(site, 12)));
    look();
    if (kills < wanted) violations.push(`only ${kills} of ${wanted * 4} processes were killed in time`);
    return { kills, violations: violations.map((violation) => `random moments: ${violation}`) };
  } finally {
    site.remove();
  }
}

/** How long an enqueue and a run take here, in milliseconds. */
async function usualTimes(site: Site): Promise<number> {
  const started = performance.now();
  for (let at = 0; at < 3; at += 1) {
    await site.done(["enqueue", "--kind", "ping", "--to", "seat-1"]);
    await site.done(["run", "--once"]);
  }
  return (performance.now() - started) / 6;
}

async function killedAfter(site: Site, args: readonly string[], ms: number): Promise<{ killed: boolean; stdout: string }> {
  const child = Bun.spawn([BINARY, ...args], { cwd: site.home, env: site.env(), stdio: ["ignore", "pipe", "ignore"] });
  const stdout = child.stdout.text();
  await Promise.race([hostClock.sleep(ms), child.exited]);
  child.kill("SIGKILL");
  await child.exited;
  return { killed: child.signalCode === "SIGKILL", stdout: await stdout };
}
