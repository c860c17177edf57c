/** Disks that refuse: every call to the database's files fails, the disk is full, read-only, or a file may grow no further. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hostClock } from "../../src/host.ts";
import { settle } from "./crashes.ts";
import { broken, NOTHING, open } from "./laws.ts";
import { inTime, type Part, together } from "./report.ts";
import { type SmallDisk, smallDisk } from "./small_disk.ts";
import { BINARY, type Ended, idsIn, Site } from "./site.ts";
import { failing, type Point, pointsOf, watchedOn } from "./strace.ts";

export interface Effort {
  /** Every how many calls, pages and limits; 1 is all of them. */
  readonly every: number;
  readonly atOnce: number;
}

/** What is done while the disk refuses. */
interface Work {
  readonly name: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  /** Messages that are there before. */
  readonly before: number;
}

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];
const WORKS: readonly Work[] = [
  { name: "the first enqueue", args: ENQUEUE, before: 0 },
  { name: "enqueue", args: [...ENQUEUE, "--text-file", "-"], stdin: "x".repeat(6_000), before: 2 },
  { name: "run --once", args: ["run", "--once"], before: 2 },
];

/** What a call can fail with, where that is not an I/O error. */
const ERRORS: Readonly<Record<string, readonly string[]>> = {
  pwrite64: ["EIO", "ENOSPC"],
  ftruncate: ["EIO", "ENOSPC"],
  openat: ["EIO", "ENOSPC", "EMFILE"],
  fcntl: ["ENOLCK"],
  mmap: ["ENOMEM"],
};

/** Most pages that are left free, and the limits of a file's size in blocks of 512 bytes. */
const MOST_PAGES = 40;
const LIMITS: readonly number[] = Array.from({ length: 51 }, (_, at) => at * 8);

/**
 * A lock that is never given is waited for: half a minute by what enters a message, so few of them are tried, and by a runner with
 * an outcome in its hands as long as it takes.
 */
function waitsForEver({ args }: Work, { call, nth }: Point): boolean {
  return call === "fcntl" && (args[0] === "run" || nth % 10 !== 1);
}

/** I/O and a full disk; a lock that cannot be had; a file that cannot be written. */
const CODES: readonly (number | null)[] = [74, 75, 77];

export async function disks(scratch: string, { every, atOnce }: Effort): Promise<Omit<Part, "name" | "seconds">> {
  const violations: string[] = [];
  const counts = { "calls refused": 0, "full disks": 0, "read-only disks": 0, "limits of a file": 0, "runners that went on": 0 };
  const models = new Map<Work, readonly [Site, readonly string[]]>();
  for (const work of WORKS) models.set(work, await modelOf(scratch, work));
  const cases: (() => Promise<string[]>)[] = [];
  /** A runner that cannot write what it has in its hands waits for half a minute: many of them can wait side by side. */
  const waiting: (() => Promise<string[]>)[] = [];
  const add = (what: keyof typeof counts, tag: string, run: () => Promise<string[]>, among = cases): void =>
    void among.push(async () => {
      counts[what] += 1;
      return (await inTime(run())).map((what) => `${tag}: ${what}`);
    });
  for (const [work, [model, ids]] of models) {
    const points = await census(model, work);
    if (points.length < 10) violations.push(`${work.name}: only ${points.length} calls were seen`);
    for (const point of points.filter((_, at) => at % every === 0))
      for (const error of ERRORS[point.call] ?? ["EIO"])
        for (const ever of waitsForEver(work, point) ? [false] : [false, true])
          add(
            "calls refused",
            `${work.name}, ${point.call} ${point.nth}${ever ? " and all after it" : ""} ${error}`,
            () => inCopy(model, (site) => refused(site, work, ids, failing(filesOf(site), point, error, ever))),
            ever && work.args[0] === "run" ? waiting : cases,
          );
    for (let pages = 0; pages <= MOST_PAGES; pages += every)
      add("full disks", `${work.name}, ${pages} pages free`, () => inCopy(model, (site) => onFullDisk(site, work, ids, pages)));
    add("read-only disks", `${work.name}, read-only`, () => inCopy(model, (site) => onReadOnly(site, work, ids)));
    for (const blocks of LIMITS.filter((_, at) => at % every === 0))
      add("limits of a file", `${work.name}, files of ${blocks / 2} KiB`, () =>
        inCopy(model, (site) => refused(site, work, ids, ["/bin/sh", "-c", 'ulimit -f "$0" && exec "$@"', String(blocks)])),
      );
  }
  for (const pages of [0, 1, 2, 4, 8])
    add("runners that went on", `run, ${pages} pages free`, async () => {
      const site = Site.make(scratch, { seconds: 0.4, settings: { run: { interval: "300ms" } } });
      return goesOn(site, pages).finally(() => site.remove());
    });
  const workOff = (list: typeof cases, atOnce: number): Promise<void> =>
    together(list, atOnce, async (run) => void violations.push(...(await run())));
  await Promise.all([workOff(cases, atOnce), workOff(waiting, 8 * atOnce)]);
  for (const [model] of models.values()) model.remove();
  return { counts, violations };
}

async function modelOf(scratch: string, work: Work): Promise<readonly [Site, readonly string[]]> {
  const site = Site.make(scratch, { maxAttempts: 5 });
  const ids: string[] = [];
  for (let at = 0; at < work.before; at += 1) ids.push(...idsIn(await site.done(ENQUEUE)));
  return [site, ids];
}

async function inCopy(model: Site, what: (site: Site) => Promise<string[]>): Promise<string[]> {
  const site = model.copy();
  try {
    return await what(site);
  } finally {
    site.remove();
  }
}

const filesOf = ({ database }: Site): string[] => ["", "-wal", "-shm", "-journal"].map((suffix) => `${database}${suffix}`);

/** The calls that the work makes on the files of the database. */
async function census(model: Site, { args, stdin }: Work): Promise<Point[]> {
  const site = model.copy();
  try {
    const log = join(site.home, "calls");
    await site.run(args, { ...(stdin === undefined ? {} : { stdin }), under: watchedOn(filesOf(site), log) });
    return pointsOf(readFileSync(log, "utf8"), false);
  } finally {
    site.remove();
  }
}

/** Does the work under trouble, and then looks whether all is well without it. */
async function refused(site: Site, work: Work, ids: readonly string[], under: readonly string[]): Promise<string[]> {
  const ended = await site.run(work.args, { ...(work.stdin === undefined ? {} : { stdin: work.stdin }), under });
  const printed = work.args[0] === "enqueue" ? idsIn(ended.stdout) : [];
  return [...answered(work, ended), ...(await recovers(site, [...ids, ...printed]))];
}

/** What a person reads: a code of the contract, a sentence with a way out, an id only with success. */
export function answered({ args }: Pick<Work, "args">, { code, signal, stdout, stderr, hung }: Ended): string[] {
  if (hung) return ["it hangs"];
  if (signal !== null) return [`it was ended by ${signal}`];
  const enqueues = args[0] === "enqueue";
  const found: string[] = [];
  if (code !== 0 && !CODES.includes(code)) found.push(`exit ${code}: ${stderr.trim()}`);
  if (code !== 0 && enqueues && idsIn(stdout).length > 0) found.push(`exit ${code} with an id`);
  if (code === 0 && enqueues && idsIn(stdout).length !== 1) found.push("exit 0 without an id");
  if (code !== 0 && stderr === "") found.push(`exit ${code} without a word`);
  for (const line of stderr.split("\n").slice(0, -1)) if (!/^outbox: \S.*$/.test(line)) found.push(`this is no message: ${line}`);
  if (code !== 0 && !/^outbox: .+; .+$/m.test(stderr)) found.push(`no way out is told: ${stderr.trim()}`);
  return found;
}

/** The disk is well again: nobody helps, and everything is there, taken and brought to its end. */
async function recovers(site: Site, ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const look = (when: string): void => {
    if (!existsSync(site.database)) return void (ids.length > 0 ? found.push(`${when}: the database is gone`) : null);
    found.push(...site.look((db) => broken(db, hostClock.now(), { ...NOTHING, ids })).map((what) => `${when}: ${what}`));
    if (site.rows().length > 0) found.push(...site.unclaimed().map((what) => `${when}: ${what}`));
  };
  look("afterwards");
  const next = await site.run(ENQUEUE);
  if (next.code !== 0) return [...found, `enqueue afterwards: exit ${next.code}, ${next.stderr.trim()}`];
  found.push(...(await settle(site)));
  look("at the end");
  return [...found, ...open(site.rows())];
}

async function onFullDisk(site: Site, work: Work, ids: readonly string[], pages: number): Promise<string[]> {
  using disk = smallDisk(site);
  disk.fillUpTo(pages);
  return await troubled(site, work, ids, disk, () => disk.empty());
}

async function onReadOnly(site: Site, work: Work, ids: readonly string[]): Promise<string[]> {
  using disk = smallDisk(site);
  disk.readOnly(true);
  return await troubled(site, work, ids, disk, () => disk.readOnly(false));
}

async function troubled(site: Site, work: Work, ids: readonly string[], _: SmallDisk, mend: () => void): Promise<string[]> {
  const ended = await site.run(work.args, work.stdin === undefined ? {} : { stdin: work.stdin });
  const printed = work.args[0] === "enqueue" ? idsIn(ended.stdout) : [];
  const found = answered(work, ended);
  if (ended.code === 74 && !/full|no space|read-only|I\/O/i.test(ended.stderr)) found.push(`the disk is not named: ${ended.stderr.trim()}`);
  mend();
  return [...found, ...(await recovers(site, [...ids, ...printed]))];
}

/** How long a runner may take to notice. */
const PATIENCE_MS = 30_000;

/** A runner whose disk fills up while its commands run: it keeps what they came to, and writes it when there is room. */
async function goesOn(site: Site, pages: number): Promise<string[]> {
  const ids = [idsIn(await site.done(ENQUEUE)), idsIn(await site.done(ENQUEUE))].flat();
  using disk = smallDisk(site);
  const runner = Bun.spawn([BINARY, "run"], { cwd: site.home, env: site.env(), stdio: ["ignore", "ignore", "pipe"] });
  const said = runner.stderr.text();
  try {
    const found: string[] = [];
    if (!(await soon(() => site.log().includes("start")))) found.push("nothing was started");
    disk.fillUpTo(pages);
    await soon(() => (site.log().match(/^end /gm)?.length ?? 0) === 2);
    await hostClock.sleep(700); // it tries to write, and tells
    disk.empty();
    if (!(await soon(() => site.rows().every(({ status }) => status === "delivered")))) found.push("it did not go on");
    if (site.rows().some(({ attempt }) => attempt !== 1)) found.push("the trouble was charged to a row");
    runner.kill("SIGTERM");
    if ((await runner.exited) !== 0) found.push(`the runner ended with ${runner.exitCode}: ${await said}`);
    return [...found, ...(await recovers(site, ids))];
  } finally {
    runner.kill("SIGKILL");
    await runner.exited;
  }
}

async function soon(condition: () => boolean): Promise<boolean> {
  const until = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > until) return false;
    await hostClock.sleep(20);
  }
  return true;
}
