/** `run` on databases that cannot be opened at its start: for good, or only just now. */
import { expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Database } from "bun:sqlite";
import { ID } from "./outbox.ts";
import { sh, until, Workstation } from "./running.ts";

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

function workstation(): Workstation {
  return new Workstation().settings({ dispatch: { notify_template: sh("echo $1 >>sent") } });
}

test("run ends at once where its only database can never be opened, as run --once does", async () => {
  using place = workstation();
  writeFileSync(place.file("text.db"), "dear diary, ".repeat(1_000));
  symlinkSync(place.file("gone"), place.file("link.db"));
  mkdirSync(place.file("directory.db"));
  {
    using db = new Database(place.file("shop.db"));
    db.run("CREATE TABLE orders (id)");
  }
  for (const [name, code, said] of [
    ["text.db", 74, /it is not a database/],
    ["shop.db", 74, /belongs to another program/],
    ["directory.db", 74, /is not a regular file/],
    ["no/such.db", 74, /there is no directory/],
    ["link.db", 77, /is a symlink to nowhere/],
  ] as const)
    for (const once of [[], ["--once"]]) await place.run(["--db", name, "run", ...once], { code, stderr: said });
});

test("run goes on where another of its databases can be opened, and where its own turns bad later", async () => {
  using place = workstation();
  writeFileSync(place.file("text.db"), "dear diary, ".repeat(1_000));
  place.settings({ sources: { shop: place.file("text.db") }, dispatch: { notify_template: sh("echo $1 >>sent") } });
  await place.here(ENQUEUE, { stdout: ID });
  const runner = place.background("run");
  await until(() => /it is not a database/.test(runner.said()));
  await place.here(ENQUEUE, { stdout: ID });
  await until(() => /2 ping to seat-1 delivered/.test(runner.said()));
  for (const suffix of ["", "-wal", "-shm"]) rmSync(place.database + suffix, { force: true });
  writeFileSync(place.database, "dear diary, ".repeat(1_000));
  await until(() => /outbox\.db: it is not a database/.test(runner.said()));
  rmSync(place.database);
  await place.here(ENQUEUE, { stdout: ID });
  await until(() => /source default answers again/.test(runner.said()));
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});

test("a lock that lasts long enough to be told is told to its end, also where run then ends well", async () => {
  using place = workstation();
  await place.here(ENQUEUE, { stdout: ID });
  using other = new Database(place.database);
  other.run("BEGIN IMMEDIATE");
  const runner = place.background("run", "--once");
  await until(() => /another process holds its write lock/.test(runner.said()));
  other.run("ROLLBACK");
  expect(await runner.exited).toBe(0);
  expect(runner.said()).toMatch(
    /^outbox: database \S+: another process holds its write lock; try again\noutbox: source default answers again\n$/,
  );
});
