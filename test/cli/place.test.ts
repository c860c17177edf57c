/** Where things are: paths that cannot be meant, homes that are none, links that others could have made, locks of others. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { hostClock } from "../../src/host.ts";
import { BINARY, ID } from "./outbox.ts";
import { sh, until, Workstation } from "./running.ts";

const TO = ["--kind", "k", "--to", "d"];
const REPLACED = /^outbox: the path .* holds bytes that are not UTF-8, or U\+FFFD, which stands for them; /;

test.each([
  ["--db", ["enqueue", ...TO, "--db", "a\ufffd.db"], {}],
  ["OUTBOX_DB", ["enqueue", ...TO], { OUTBOX_DB: "a\ufffd.db" }],
  ["--body-file", ["enqueue", ...TO, "--body-file", "a\ufffd"], {}],
  ["--batch", ["enqueue", ...TO, "--batch", "a\ufffd"], {}],
  ["FILE", ["init", "a\ufffd"], {}],
  ["--db of a command that looks", ["ls", "--db", "a\ufffd"], {}],
] as const)("a path in %s whose bytes were replaced is refused", async (_, args, env) => {
  using place = new Workstation();
  writeFileSync(place.file("a\ufffd"), "{}");
  await place.run(args, { code: 65, stderr: REPLACED }, { env });
  expect(existsSync(place.file("a\ufffd.db"))).toBeFalse();
});

test("bytes that are no UTF-8 are such a path", async () => {
  using place = new Workstation();
  const { code, stderr } = await place.sh(`outbox enqueue ${TO.join(" ")} --db "$(printf 'a\\377.db')"`);
  expect([code, REPLACED.test(stderr)]).toEqual([65, true]);
});

test("~/ is the same home for flags as for settings, also without HOME", async () => {
  using place = new Workstation();
  const child = Bun.spawnSync([BINARY, "ls", "--db", "~/no-such-outbox/a.db"], { cwd: place.home, env: { PATH: "/usr/bin:/bin" } });
  expect([child.exitCode, child.stderr.toString()]).toEqual([
    1,
    expect.stringContaining(`no database at ${homedirOfUser()}/no-such-outbox/a.db; `),
  ]);
});

/** What the system says, whatever HOME is here. */
function homedirOfUser(): string {
  const child = Bun.spawnSync([process.execPath, "-e", "console.log(require('node:os').homedir())"], { env: {} });
  return child.stdout.toString().trim() || homedir();
}

test("commands run in / where the home is below a file", async () => {
  using place = new Workstation();
  place.settings({ dispatch: { notify_template: sh(`pwd > ${place.file("where")}`) } });
  await place.run(["enqueue", ...TO], { stdout: ID });
  const named = ["--config", place.settingsFile, "--db", place.database];
  await place.run(["run", "--once", ...named], {}, { env: { HOME: "/etc/passwd/x" } });
  expect(place.lines("where")).toEqual(["/"]);
});

test("run refuses a database behind a link that others could have made, although it exists", async () => {
  using place = new Workstation();
  place.settings({ dispatch: { notify_template: ["true"] } });
  await place.run(["enqueue", ...TO], { stdout: ID });
  mkdirSync(place.file("wide"));
  symlinkSync(place.database, place.file("wide/a.db"));
  await place.run(["run", "--once", "--db", "wide/a.db"]);
  chmodSync(place.file("wide"), 0o777);
  await place.run(["run", "--once", "--db", "wide/a.db"], { code: 77, stderr: /a symlink in a directory that others may write/ });
});

test("a runner that waits for a lock of others has its hands free: what it does meanwhile is late by a fraction of a second", async () => {
  using place = new Workstation();
  place.settings({ sources: { other: "./other.db" }, dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') } });
  await place.run(["enqueue", ...TO], { stdout: ID });
  await place.run(["enqueue", ...TO, "--source", "other"], { stdout: ID });
  using locked = new Database(place.database);
  locked.run("BEGIN IMMEDIATE");
  const runner = place.background("run");
  await until(() => place.lines("log").length === 1);
  for (let sent = 2; sent <= 4; sent++) {
    const began = hostClock.monotonicMs();
    await place.run(["enqueue", ...TO, "--source", "other"], { stdout: ID });
    await until(() => place.lines("log").length === sent);
    expect(hostClock.monotonicMs() - began).toBeLessThan(3_000);
  }
  locked.run("ROLLBACK");
  await until(() => place.lines("log").length === 5);
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});

test("ack reads a broken settings file as enqueue does: it stops only where that names the database", async () => {
  using place = new Workstation();
  await place.run(["enqueue", ...TO, "--ack"], { stdout: ID });
  const token = place.row(1).ack_token ?? "";
  place.settingsText("dispach: {}\n");
  const told = /^outbox: .*dispach.*; using the built-in bounds\n$/;
  await place.run(["ack", "1", token], { code: 78, stderr: /dispach/ });
  await place.run(["ack", "1", "x", "--db", place.database], { code: 1, stderr: /using the built-in bounds\noutbox: .*not its token\n$/ });
  await place.run(["ack", "1", token], { stderr: told }, { env: { OUTBOX_DB: place.database } });
  expect(place.row(1).status).toBe("acked");
  chmodSync(place.settingsFile, 0o666);
  await place.run(["ack", "1", token, "--db", place.database], { code: 77, stderr: /chmod/ });
});

test("the largest number that a flag takes is named", async () => {
  using place = new Workstation();
  const stderr = 'outbox: --limit "10000000000" is not a whole number from 0 to 999999999; write digits only\n';
  await place.run(["ls", "--limit", "10000000000"], { code: 2, stderr });
});

test("settings that vanish under a runner hold on, and that is told once", async () => {
  using place = new Workstation();
  place.settings({ dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') }, run: { interval: "200ms" } });
  await place.enqueue({});
  const runner = place.background("run");
  await until(() => place.lines("log").length === 1);
  rmSync(place.settingsFile);
  await until(() => runner.said().includes(`the settings file ${place.settingsFile} is gone`));
  runner.kill("SIGHUP");
  await place.enqueue({});
  await until(() => place.lines("log").length === 2);
  expect(runner.said().split("is gone").length - 1).toBe(1);
  place.settings({ dispatch: { notify_template: sh('echo "new $1" >> "$HOME/log"') } });
  await until(() => runner.said().includes("settings read again from"));
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});
