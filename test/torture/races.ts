/** Many programs at one database: enqueuers, runners that share, runners that are killed, runners that are frozen past their lease. */
import { hostClock } from "../../src/host.ts";
import { freeze } from "../fixtures/frozen.ts";
import { clockAt } from "./clock.ts";
import { settle } from "./crashes.ts";
import { broken, type Note, NOTHING, notesOf, open } from "./laws.ts";
import { numbers, type Part, together } from "./report.ts";
import { BINARY, idsIn, Site } from "./site.ts";

export interface Effort {
  /** Enqueues of each storm. */
  readonly enqueues: number;
  readonly freezes: number;
}

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];
const [ENQUEUERS, RUNNERS, KEYS] = [12, 4, 10];
/** Past every lease. */
const LATER_S = 3_600;

export async function races(scratch: string, { enqueues, freezes }: Effort): Promise<Omit<Part, "name" | "seconds">> {
  const calm = await storm(scratch, enqueues, numbers(1), false);
  const wild = await storm(scratch, enqueues, numbers(2), true);
  const frozen: string[] = [];
  for (let at = 0; at < freezes; at += 1) frozen.push(...(await frozenOne(scratch, at % 2)));
  return {
    counts: { "enqueues raced": 2 * enqueues, "runners killed": wild.killed, "runners frozen": freezes },
    violations: [
      ...calm.found.map((what) => `runners that share: ${what}`),
      ...wild.found.map((what) => `runners that are killed: ${what}`),
      ...frozen.map((what) => `a runner that is frozen: ${what}`),
    ],
  };
}

/** Enqueuers and runners at once; half of the messages share a few keys. */
async function storm(scratch: string, enqueues: number, random: () => number, kill: boolean): Promise<{ found: string[]; killed: number }> {
  const site = Site.make(scratch, { seconds: 0.02, maxAttempts: kill ? 50 : 3 });
  const found: string[] = [];
  const ids: string[] = [];
  const keys = new Map<string, Set<string>>();
  let killed = 0;
  try {
    const over = new AbortController();
    const runner = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const child = Bun.spawn([BINARY, "run", "--once"], { cwd: site.home, env: site.env(), stdio: ["ignore", "ignore", "pipe"] });
        const said = child.stderr.text();
        if (kill && random() < 0.5) {
          await Promise.race([hostClock.sleep(30 + random() * 400), child.exited]);
          child.kill("SIGKILL");
        }
        await child.exited;
        if (child.signalCode !== null) killed += 1;
        else if (child.exitCode !== 0) found.push(`run --once: exit ${child.exitCode}, ${await said}`);
      }
    };
    const enqueuer = async (at: number): Promise<void> => {
      const key = at % 2 === 0 ? null : `key-${at % KEYS}`;
      const { code, stdout, stderr } = await site.run([...ENQUEUE, ...(key === null ? [] : ["--dedup-key", key])]);
      const [id] = idsIn(stdout);
      if (code !== 0 || id === undefined) return void found.push(`enqueue: exit ${code}, ${stderr}`);
      ids.push(id);
      if (key !== null) keys.set(key, (keys.get(key) ?? new Set()).add(id));
    };
    await site.done(ENQUEUE); // a runner makes no database for others to find
    const runners = Array.from({ length: RUNNERS }, runner);
    const all = Array.from({ length: enqueues }, (_, at) => at);
    await together(all, ENQUEUERS, enqueuer);
    over.abort();
    await Promise.all(runners);
    found.push(...(await settle(site, 60)), ...lawful(site, ids));
    found.push(...[...keys].filter(([, own]) => own.size > 1).map(([key, own]) => `the key ${key} gave ${own.size} ids`));
    const wanted = 1 + Math.ceil(enqueues / 2) + keys.size;
    if (site.rows().length !== wanted) found.push(`${site.rows().length} rows, ${wanted} were entered`);
    if (!kill)
      found.push(
        ...overlapping(notesOf(site.log())),
        ...site.rows().flatMap(({ id, attempt }) => (attempt === 1 ? [] : `${id}: ${attempt} attempts`)),
      );
    if (kill && killed < enqueues / 20) found.push(`only ${killed} runners were killed in time`);
    return { found, killed };
  } finally {
    site.remove();
  }
}

function lawful(site: Site, ids: readonly string[]): string[] {
  return [
    ...site.look((db) => broken(db, hostClock.now() + 100 * LATER_S, { ...NOTHING, ids })),
    ...site.unclaimed(),
    ...open(site.rows()),
  ];
}

/** Commands of one dispatch that ran at one time: nobody was killed, so there is no reason for it. */
export function overlapping(notes: readonly Note[]): string[] {
  const running = new Map<string, number>();
  return notes.flatMap(({ what, id }) => {
    const now = (running.get(id) ?? 0) + (what === "start" ? 1 : -1);
    running.set(id, now);
    return now > 1 ? [`${id}: two commands at one time`] : [];
  });
}

/** Frozen in the middle of its command until another runner has done the work: what it then says counts for nothing. */
async function frozenOne(scratch: string, secondEndsWith: number): Promise<string[]> {
  const site = Site.make(scratch, { seconds: 0.5 });
  const ids = idsIn(await site.done(ENQUEUE));
  const frozen = Bun.spawn([BINARY, "run", "--once"], { cwd: site.home, env: site.env(), stdio: ["ignore", "ignore", "ignore"] });
  try {
    while (!site.log().includes("start") && frozen.exitCode === null) await hostClock.sleep(5);
    await freeze(frozen, site.database);
    site.commandsEnd(secondEndsWith);
    // Its holder still lives, so another one waits a lease more: both lie behind this clock.
    const second = await site.run(["run", "--once"], { env: clockAt(LATER_S) });
    const before = JSON.stringify(site.rows());
    const starts = notesOf(site.log()).filter(({ what }) => what === "start").length;
    frozen.kill("SIGCONT");
    const code = await Promise.race([frozen.exited, hostClock.sleep(30_000)]);
    const found: string[] = [];
    if (second.code !== 0 || starts < 2) found.push(`nobody took over: exit ${second.code}, ${starts} commands, ${second.stderr.trim()}`);
    if (code !== 0) found.push(`afterwards: exit ${code ?? "never"}`);
    // A failed second attempt is due again, and the first runner may take it like every other: then it is a claim of its own.
    if (secondEndsWith === 0 && JSON.stringify(site.rows()) !== before) found.push("it changed what was no longer its own");
    return [...found, ...(await settle(site)), ...lawful(site, ids)];
  } finally {
    frozen.kill("SIGKILL");
    await frozen.exited;
    site.remove();
  }
}
