/** Files that belong to somebody else. `scripts/system.ts` runs this; giving a file away needs root. */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, Place, type Result } from "../cli/outbox.ts";
import { until } from "../cli/running.ts";

/** A user that is neither root nor, on any usual machine, anybody. */
const SOMEBODY = 54_321;
const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

test("run refuses a database that another user owns, although it is root", async () => {
  using place = new Place();
  await place.run(ENQUEUE, { stdout: /./ });
  chownSync(place.database, SOMEBODY, SOMEBODY);
  await place.run(["run", "--once"], { code: 77, stderr: /belongs to another user/ });
});

test("a settings file that another user owns stops enqueue, and nothing is stored", async () => {
  using place = new Place();
  const settings = join(place.home, "settings.yaml");
  writeFileSync(settings, "{}\n", { mode: 0o600 });
  chownSync(settings, SOMEBODY, SOMEBODY);
  await place.run(["--config", "settings.yaml", ...ENQUEUE], { code: 77, stderr: /owned by another user/ });
  expect(await Bun.file(place.database).exists()).toBe(false);
});

test("companions that kept the mode of a database which was read-only are named, with what mends them", async () => {
  using place = new Place();
  // The binary may lie where others cannot reach it.
  const binary = join(place.home, "binary");
  copyFileSync(BINARY, binary);
  chownSync(place.home, SOMEBODY, SOMEBODY);
  const database = join(place.home, "o.db");
  const start = (...args: readonly string[]): Result => {
    const command = ["setpriv", `--reuid=${SOMEBODY}`, `--regid=${SOMEBODY}`, "--clear-groups", binary, "--db", database, ...args];
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: place.home, env: place.env(), stdio: ["ignore", "pipe", "pipe"] });
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  expect(start(...ENQUEUE).code).toBe(0);
  chmodSync(database, 0o400);
  expect(start("ls").code).toBe(0);
  expect(statSync(`${database}-shm`).mode & 0o777).toBe(0o400);
  chmodSync(database, 0o600);
  const { code, stderr } = start(...ENQUEUE);
  expect(code).toBe(77);
  expect(stderr).toMatch(/^outbox: database \S+: (o\.db-wal and )?o\.db-shm beside it cannot be written; chmod 600 .*\S+\/o\.db-shm\n$/);
  expect(Bun.spawnSync(["/bin/sh", "-c", stderr.slice(stderr.indexOf("chmod"))]).exitCode).toBe(0);
  expect(start(...ENQUEUE).code).toBe(0);
});

test("run --dry-run reads a database in a directory that may not be written, and leaves nothing in it", () => {
  using place = new Place();
  const binary = join(place.home, "binary");
  copyFileSync(BINARY, binary);
  const directory = join(place.home, "a 100% odd #1?");
  mkdirSync(directory);
  for (const each of [place.home, directory]) chownSync(each, SOMEBODY, SOMEBODY);
  const database = join(directory, "o.db");
  const start = (...args: readonly string[]): Result => {
    const command = ["setpriv", `--reuid=${SOMEBODY}`, `--regid=${SOMEBODY}`, "--clear-groups", binary, "--db", database, ...args];
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: place.home, env: place.env(), stdio: ["ignore", "pipe", "pipe"] });
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  expect(start(...ENQUEUE).code).toBe(0);
  chmodSync(database, 0o400);
  chmodSync(directory, 0o500);
  const { code, stderr } = start("run", "--dry-run");
  expect({ code, stderr }).toMatchObject({ code: 78, stderr: expect.stringContaining("left as they are: 1 by a fault") });
  expect(readdirSync(directory)).toEqual(["o.db"]);
});

test("a run that may no longer look into the directory of its database says so, and goes on once it may", async () => {
  using place = new Place();
  const binary = join(place.home, "binary");
  copyFileSync(BINARY, binary);
  const directory = join(place.home, "data");
  mkdirSync(directory);
  for (const each of [place.home, directory]) chownSync(each, SOMEBODY, SOMEBODY);
  const log = join(place.home, "log");
  const as = ["setpriv", `--reuid=${SOMEBODY}`, `--regid=${SOMEBODY}`, "--clear-groups"];
  const runner = Bun.spawn([...as, binary, "run", "--db", join(directory, "o.db")], {
    cwd: place.home,
    env: place.env(),
    stdio: ["ignore", "ignore", Bun.file(log)],
  });
  try {
    const says = (what: RegExp): Promise<void> => until(() => what.test(readFileSync(log, "utf8")));
    await until(() => existsSync(join(directory, "o.db")));
    await Bun.sleep(1_500); // at its start it would end: no database lets it in
    chmodSync(directory, 0o000);
    await says(/ error database \S+: access was denied; /);
    chmodSync(directory, 0o700);
    await says(/ warn {2}source \S+ answers again\n/);
  } finally {
    runner.kill("SIGTERM");
  }
  expect(await runner.exited).toBe(0);
});
