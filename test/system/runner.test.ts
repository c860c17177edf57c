/** A runner on a machine that is slow, full or idle. `scripts/system.ts` runs this; it needs root to mount, and strace. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { BINARY } from "../cli/outbox.ts";
import { type Background, sh, until, Workstation } from "../cli/running.ts";
import { hostClock } from "../../src/host.ts";

setDefaultTimeout(120_000);

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];
const FULL = /^outbox: database .*: (the disk is full|an I\/O error).*\n$/;
/** There was room for the claims, and none for what came of them. */
const UNWRITTEN =
  /^outbox: \d ping to seat-1: what attempt 1 came to \(the command took it\) could not be written; it will be sent again\n/gm;

async function stopped(runner: Background): Promise<number | null> {
  runner.kill("SIGTERM");
  return runner.exited;
}

test("an enqueue beside a runner syncs one to three times, and before it answers", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: ["/bin/true"] } });
  await place.enqueue({});
  const runner = place.background("run");
  await until(() => place.row(1).status === "delivered");
  const log = place.file("calls");
  const strace = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,write", "-o", log];
  const { stdout } = Bun.spawnSync([...strace, BINARY, ...ENQUEUE], {
    cwd: place.home,
    env: place.env(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const calls = readFileSync(log, "utf8").split("\n");
  const answer = calls.findIndex((line) => line.includes(`write(1, "${stdout.toString().trim()}`));
  const syncs = calls.flatMap((line, at) => (/\bf(data)?sync\(/.test(line) ? [at] : []));
  expect(syncs.length).toBeWithin(1, 4);
  expect(syncs[0]).toBeLessThan(answer);
  expect(await stopped(runner)).toBe(0);
});

test("a lock of 20 s is waited out by both ways of running, and told once", async () => {
  const wait = async (mode: readonly string[]): Promise<void> => {
    using place = new Workstation().settings({ dispatch: { notify_template: sh('echo >> "$HOME/log"; sleep 0.3') } });
    await place.enqueue({});
    const runner = place.background(...mode);
    await until(() => existsSync(place.file("log")));
    const lock = new Database(place.database);
    lock.run("PRAGMA busy_timeout = 10000");
    lock.run("BEGIN IMMEDIATE");
    await hostClock.sleep(20_000);
    lock.run("COMMIT");
    lock.close();
    await until(() => place.row(1).status === "delivered");
    expect(await stopped(runner)).toBe(0);
    expect(runner.said().match(/another process holds its write lock/g)).toHaveLength(1);
    expect(place.row(1).attempt).toBe(1);
  };
  await Promise.all([wait(["run", "--once"]), wait(["run"])]);
});

test("an idle runner sleeps, whatever keeps it from working", async () => {
  const idle: readonly Readonly<Record<string, unknown>>[] = [
    { dispatch: { notify_template: ["/bin/true"] } },
    {}, // a fault: no template
    { dispatch: { notify_template: sh("sleep 60"), timeout: "60s", concurrency: 1 } }, // all hands full
  ];
  using all = new DisposableStack();
  const places = idle.map((settings) => all.use(new Workstation()).settings(settings));
  for (const place of places) await place.enqueue({}, {});
  const runners = places.map((place) => place.background("run"));
  await hostClock.sleep(2_000);
  const before = runners.map(({ pid }) => cpuTicks(pid));
  await hostClock.sleep(20_000);
  // A tick is 10 ms: at most half a percent of a core.
  for (const [at, { pid }] of runners.entries()) expect(cpuTicks(pid) - (before[at] ?? 0)).toBeLessThanOrEqual(10);
  for (const runner of runners) {
    runner.kill("SIGTERM");
    runner.kill("SIGINT");
    await runner.exited;
  }
});

/** User and system time of a process in ticks. */
function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** A file system of 1 MiB with the database of a place, filled up to `pages` free pages; undone at the end. */
function smallDisk(
  place: Workstation,
  pages: number,
): { readonly database: string; empty(): void; ageLeases(): void; [Symbol.dispose](): void } {
  const mount = place.file("disk");
  mkdirSync(mount);
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", mount]).exitCode).toBe(0);
  const database = join(mount, "outbox.db");
  const ballast = join(mount, "ballast");
  copyFileSync(place.database, database);
  const { bavail, bsize } = statfsSync(mount);
  const fd = openSync(ballast, "w");
  writeSync(fd, new Uint8Array(Math.max(0, bavail - pages) * bsize));
  closeSync(fd);
  return {
    database,
    empty: () => rmSync(ballast),
    ageLeases() {
      using db = new Database(database);
      db.run("UPDATE dispatch_outbox SET next_attempt_at = next_attempt_at - 3600 WHERE status = 'delivering'");
    },
    [Symbol.dispose]: () => void Bun.spawnSync(["umount", "-l", mount]),
  };
}

test("enqueue on a full disk says so, prints no id and stores nothing, or has stored what it says", async () => {
  for (let pages = 0; pages <= 24; pages += 3) {
    using place = new Workstation();
    await place.enqueue({}, {});
    using disk = smallDisk(place, pages);
    const { code, stdout, stderr } = await place.start([...ENQUEUE, "--db", disk.database, "--text-file", "-"], {
      stdin: "x".repeat(6_000),
    });
    if (code === 0) expect({ stdout, stderr }).toEqual({ stdout: expect.stringMatching(/^[0-9a-f]{32}\n$/) as string, stderr: "" });
    else expect({ code, stdout, stderr }).toEqual({ code: 74, stdout: "", stderr: expect.stringMatching(FULL) as string });
    disk.empty();
    const rows = await place.json(["ls", "--db", disk.database]);
    expect(rows.map(({ seq }) => seq)).toEqual(code === 0 ? [3, 2, 1] : [2, 1]);
  }
});

test("run on a full disk starts nothing that it could not claim, and goes on when there is room", async () => {
  for (let pages = 0; pages <= 24; pages += 3) {
    using place = new Workstation().settings({ dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') } });
    await place.enqueue({}, {});
    using disk = smallDisk(place, pages);
    const once = ["run", "--once", "--db", disk.database];
    const { code, stdout, stderr: all } = await place.start(once);
    expect(stdout).toBe("");
    const again = all.match(UNWRITTEN)?.length ?? 0;
    const stderr = all.replace(UNWRITTEN, "");
    if (again > 0) expect(code).toBe(74);
    // Closing the file after the first failure may have made room.
    if (code === 0) expect(stderr === "" || FULL.test(stderr.replace(/outbox: source \S+ answers again\n$/, ""))).toBeTrue();
    else expect({ code, stderr }).toEqual({ code: 74, stderr: expect.stringMatching(FULL) as string });
    const claimed = await place
      .json(["ls", "--db", disk.database, "--status", "delivered", "--status", "delivering"], { stderr: /./ })
      .catch(() => null);
    if (claimed !== null && code !== 0) expect(place.lines("log").length).toBeLessThanOrEqual(claimed.length);
    disk.empty();
    disk.ageLeases();
    await place.run(once);
    expect((await place.json(["ls", "--db", disk.database])).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
    expect(place.lines("log")).toHaveLength(2 + again);
  }
});

test("a source on a full disk is told and skipped while the others are drained, and its rows are sent when there is room", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: sh('echo "$OUTBOX_DB" >> "$HOME/log"') } });
  await place.enqueue({});
  using disk = smallDisk(place, 0);
  place.settings({
    database: place.database,
    sources: { full: disk.database },
    dispatch: { notify_template: sh('echo "$OUTBOX_DB" >> "$HOME/log"') },
  });
  await place.run(["run", "--once"], { code: 74, stderr: FULL });
  expect(place.lines("log")).toEqual([place.database]);
  disk.empty();
  await place.run(["run", "--once"], { stderr: /^outbox: source full answers again\n$/ });
  expect(place.lines("log")).toEqual([place.database, disk.database]);
});

test("run outlives a full disk: it says so and delivers when there is room", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: sh('echo >> "$HOME/log"') }, run: { interval: "300ms" } });
  await place.enqueue({});
  using disk = smallDisk(place, 0);
  const runner = place.background("run", "--db", disk.database);
  await until(() => FULL.test(runner.said().replace(/^\S+ error /, "outbox: ")));
  disk.empty();
  await until(() => runner.said().includes("delivered"));
  // Once when it begins, at the claim or at the outcome; it does not repeat itself while it lasts.
  expect(runner.said().match(/ error /g)?.length).toBeWithin(1, 3);
  expect(await stopped(runner)).toBe(0);
});

test("a runner that was frozen for three leases changes nothing that is no longer its own", async () => {
  using place = new Workstation().settings({
    dispatch: { notify_template: sh('echo "$2" >> "$HOME/log"; sleep 0.1'), timeout: "300ms", concurrency: 1 },
  });
  await place.enqueue({});
  const frozen = place.background("run", "--once");
  await until(() => place.lines("log").length > 0);
  frozen.kill("SIGSTOP");
  const other = place.background("run");
  // A lease is 5.3 s. Its holder is still a process of this host, so its row waits for a second one.
  await hostClock.sleep(8_000);
  expect(place.row(1)).toMatchObject({ status: "delivering", attempt: 1 });
  await until(() => place.row(1).status === "delivered");
  expect(place.lines("log")).toEqual(["1", "2"]);
  await hostClock.sleep(5_000);
  const before = place.rows();
  frozen.kill("SIGCONT");
  expect(await frozen.exited).toBe(0);
  expect(place.rows()).toEqual(before);
  expect(await stopped(other)).toBe(0);
});
