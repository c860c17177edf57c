/** The runner, through the built program: what it says, with which code it ends, and what a signal does to it. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY } from "./outbox.ts";
import { sh, taken, until, WAITS, Workstation } from "./running.ts";

setDefaultTimeout(30_000);

const ONCE = ["run", "--once"];
const NOTHING = '{"attempted":0,"delivered":0,"dead_letter":0,"expired":0,"retried":0}\n';
const FAULT =
  /^outbox: no dispatch\.notify_template configured; nothing of it is sent, and no attempt is spent, until this is mended; outbox init writes a settings file to start from\n$/;
/** Takes the message. */
const TRUE = ["/bin/true"];

describe("run --once", () => {
  test.concurrent("makes the database, delivers nothing and says nothing", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: TRUE } });
    await place.run(ONCE);
    expect(existsSync(place.database)).toBeTrue();
    await place.run([...ONCE, "--json"], { stdout: NOTHING });
  });
  test.concurrent("prints one JSON line with the five counts", async () => {
    using place = new Workstation().settings({
      dispatch: {
        notify_template: sh("exit 0"),
        routes: { bad: { notify_template: sh("exit 1") }, wrong: { notify_template: sh("exit 64") } },
      },
    });
    await place.enqueue(
      {},
      { kind: "bad" },
      { kind: "bad", max_attempts: 1 },
      { expires_at: 4_000_000_000 },
      { not_before: 4_000_000_000 },
    );
    place.sql("UPDATE dispatch_outbox SET expires_at = created_at, next_attempt_at = created_at WHERE seq = 4");
    await place.run([...ONCE, "--json"], {
      stdout: '{"attempted":4,"delivered":1,"dead_letter":1,"expired":1,"retried":1}\n',
      stderr: /^outbox: 3 bad to seat-1 died \(max_attempts\): exit 1; see outbox show 3\n$/,
    });
    expect(place.row(5)).toMatchObject({ status: "pending", attempt: 0 });
  });
  test.concurrent("hands the command the envelope and the row, and its database to work on", async () => {
    using place = new Workstation();
    place.settings({
      dispatch: {
        env: { PATH: `${join(BINARY, "..")}:/usr/bin:/bin`, GREETING: "hello" },
        notify_template: sh(
          'cat > "$HOME/envelope"; env > "$HOME/env"; pwd > "$HOME/cwd"; outbox ack && outbox enqueue --kind reply --to me',
        ),
        routes: { reply: { notify_template: TRUE } },
      },
    });
    await place.here(["enqueue", "--kind", "ping", "--to", "seat-1", "--ack", "--dedup-key", "k 1", "--body", '{"b":1.0}'], {
      stdout: /./,
    });
    // What the command itself acknowledged counts as delivered.
    expect(await place.drain()).toEqual({ attempted: 1, delivered: 1, dead_letter: 0, expired: 0, retried: 0 });
    const row = place.row(1);
    expect(row).toMatchObject({ status: "acked", attempt: 1 });
    expect(place.row(2)).toMatchObject({ kind: "reply", status: "pending" });
    expect(place.lines("envelope")).toEqual([row.payload]);
    expect(place.lines("cwd")).toEqual([place.home]);
    expect(place.lines("env")).toContainValues([
      "GREETING=hello",
      `OUTBOX_ID=${row.id}`,
      "OUTBOX_KIND=ping",
      "OUTBOX_DELIVER_TO=seat-1",
      "OUTBOX_ATTEMPT=1",
      "OUTBOX_MAX_ATTEMPTS=8",
      `OUTBOX_ACK_TOKEN=${row.ack_token}`,
      "OUTBOX_DEDUP_KEY=k 1",
      `OUTBOX_DB=${place.database}`,
      `OUTBOX_CONFIG=${place.settingsFile}`,
    ]);
    expect(place.lines("env").filter((line) => line.startsWith("OUTBOX_ORDERING_KEY"))).toEqual([]);
  });
  test.concurrent("tries each row once, also without a backoff", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: sh("exit 1"), backoff: { base: 0 } } });
    await place.enqueue({}, {});
    expect(await place.drain()).toMatchObject({ attempted: 2, retried: 2 });
    expect(await place.drain()).toMatchObject({ attempted: 2, retried: 2 });
  });
  test.concurrent("waits a backoff for the acknowledgement and dies of the last one that does not come", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: TRUE } });
    await place.enqueue({ ack_required: true, max_attempts: 1 });
    expect(await place.drain()).toMatchObject({ attempted: 1, delivered: 1 });
    expect(place.row(1)).toMatchObject({ status: "pending", reason_code: "dispatch.delivered.transport_ok" });
    place.ageWaits();
    await place.run(ONCE, {
      stderr: /^outbox: 1 ping to seat-1 died: sent, 1 of 1 attempts used, no acknowledgement came; see outbox show 1\n$/,
    });
    expect(place.row(1)).toMatchObject({ status: "dead_letter", reason_code: "dispatch.dead_letter.ack_timeout" });
  });
});

describe("a message that kills its runner every time", () => {
  test.concurrent("dies after max_attempts executions", async () => {
    using place = new Workstation();
    place.settings({ dispatch: { timeout: "1s", notify_template: sh('echo "$2" >> "$HOME/log"; kill -KILL $PPID; exit 1') } });
    await place.enqueue({ max_attempts: 3 });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await place.background(...ONCE).exited).not.toBe(0);
      await until(() => place.lines("log").length === attempt);
      expect(place.row(1)).toMatchObject({ status: "delivering", attempt });
      place.ageLeases();
    }
    await place.run(ONCE, { stderr: /died: the runner of attempt 3 of 3 vanished; see outbox show 1\n$/ });
    expect(place.row(1)).toMatchObject({ status: "dead_letter", reason_code: "dispatch.dead_letter.max_attempts", attempt: 3 });
    expect(place.lines("log")).toEqual(["1", "2", "3"]);
  });
});

describe("a fault", () => {
  test.concurrent("of a missing template spends nothing, is told once and is exit 78; rows still expire", async () => {
    using place = new Workstation();
    await place.enqueue({}, {}, { expires_at: 4_000_000_000 });
    place.sql("UPDATE dispatch_outbox SET expires_at = created_at, next_attempt_at = created_at WHERE seq = 3");
    await place.run([...ONCE, "--json"], { code: 78, stdout: NOTHING.replaceAll(/"(attempted|expired)":0/g, '"$1":1'), stderr: FAULT });
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["pending", 0],
      ["pending", 0],
      ["expired", 0],
    ]);
  });
  test.concurrent("is a failed attempt with on_config_error: fail", async () => {
    using place = new Workstation().settings({ dispatch: { on_config_error: "fail" } });
    await place.enqueue({});
    expect(await place.drain()).toMatchObject({ attempted: 1, retried: 1 });
    expect(place.row(1)).toMatchObject({ status: "pending", attempt: 1, last_error: "no dispatch.notify_template configured" });
  });
  test.concurrent("of a missing command names it and the PATH, and stops no other route", async () => {
    using place = new Workstation().settings({
      dispatch: { notify_template: TRUE, routes: { other: { notify_template: ["no-such-command"], env: { PATH: "/usr/bin" } } } },
    });
    await place.enqueue({ kind: "other" }, {});
    await place.run(ONCE, { code: 78, stderr: /^outbox: route "other": no command "no-such-command" in PATH \(\/usr\/bin\); .*\n$/ });
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["pending", 0],
      ["delivered", 1],
    ]);
  });
  test.concurrent("that shows only at the start gives the attempts back and puts the rows off", async () => {
    using place = new Workstation();
    const script = place.file("script");
    writeFileSync(script, "#!/no/such/interpreter\n", { mode: 0o755 });
    place.settings({ dispatch: { notify_template: [script], concurrency: 2 } });
    await place.enqueue({}, {}, {}, {});
    await place.run(ONCE, { code: 78, stderr: /^outbox: .*the interpreter in its first line does not exist \(ENOENT\); .*\n$/ });
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual(Array.from({ length: 4 }, () => ["pending", 0]));
    // As many as run at once, or fewer where the first shows the fault before the next is claimed; never one for each row.
    const tried = place.history().filter(({ status }) => status === "delivering").length;
    expect([1, 2]).toContain(tried);
    for (const row of place.rows().slice(0, tried)) expect(row.next_attempt_at - row.updated_at).toBeCloseTo(30, 1);
  });
  test.concurrent("of the machine, out of files, releases what could not start, is told once and is exit 75", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: sh("sleep 0.3"), concurrency: 100 } });
    await place.enqueue(...Array.from({ length: 40 }, (_, at) => ({ deliver_to: `seat-${at}` })));
    const { code, stdout, stderr } = await place.sh("ulimit -n 60; exec outbox run --once --json");
    expect({ code, stderr: stderr.replace(/: the machine has .*;/, ": ...;") }).toEqual({
      code: 75,
      stderr: "outbox: the machine is out of resources: ...; nothing is started for a while, and no attempt is spent\n",
    });
    const counts = JSON.parse(stdout) as { attempted: number; delivered: number };
    // A claim that lasts long leaves the rest for the next one, and there is none after the machine has shown that it is out of files.
    expect(counts.attempted).toBeWithin(counts.delivered + 1, 41);
    expect(counts.delivered).toBeGreaterThan(0);
    expect(place.rows().filter(({ status, attempt }) => status === "pending" && attempt === 0)).toHaveLength(40 - counts.delivered);
  });
});

test.concurrent("a kind without a route is retried once with a warning, then dies; with one attempt it dies at once", async () => {
  using place = new Workstation().settings({ dispatch: { routes: { known: { notify_template: TRUE } } } });
  await place.enqueue({}, { max_attempts: 1 }, { kind: "known" });
  await place.run(ONCE, {
    stderr:
      /^outbox: 1 ping to seat-1 no route for kind "ping" .*; tried once more, then it dies\noutbox: 2 .* died \(unresolvable\): .*\n$/,
  });
  expect(place.rows().map(({ status }) => status)).toEqual(["pending", "dead_letter", "delivered"]);
  place.ageWaits();
  await place.run(ONCE, { stderr: /^outbox: 1 ping to seat-1 died \(unresolvable\): .*\n$/ });
  expect(place.row(1)).toMatchObject({ status: "dead_letter", attempt: 2, unresolved: 2 });
});

describe("the exit code says what is wrong", () => {
  test.concurrent.each([
    ["a directory that is missing", ["--db", "nowhere/outbox.db"], 74, /there is no directory/],
    ["a file that is no database", ["--db", "text"], 74, /not a database/],
    ["a database of another program", ["--db", "foreign.db"], 74, /belongs to another program/],
    ["a link to nowhere", ["--db", "dangling.db"], 77, /symlink to nowhere/],
    ["a database that is newer", ["--db", "newer.db"], 78, /has schema 9, this outbox knows up to \d+; use the newer outbox/],
    ["settings that are wrong", ["--config", "wrong.yaml"], 78, /wrong\.yaml/],
  ])("of %s", async (_, flags, code, stderr) => {
    using place = new Workstation().settings({ dispatch: { notify_template: TRUE } });
    await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: /./ });
    writeFileSync(place.file("text"), "x".repeat(5_000));
    writeFileSync(place.file("wrong.yaml"), "dispach: {}\n", { mode: 0o600 });
    symlinkSync(place.file("nothing"), place.file("dangling.db"));
    new Database(place.file("foreign.db")).run("CREATE TABLE t (x)");
    copyFileSync(place.database, place.file("newer.db"));
    new Database(place.file("newer.db")).run("UPDATE dispatch_schema SET version = 9");
    await place.run([...ONCE, ...flags], { code, stderr: new RegExp(`^outbox: .*${stderr.source}.*\n$`) });
  });
  test.concurrent("for the service too, where waiting does not help", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: TRUE } });
    await place.enqueue({});
    place.sql("UPDATE dispatch_schema SET version = 9");
    await place.run(["run"], { code: 78, stderr: /^.* error .* has schema 9, .*\n$/ });
    place.settingsText("dispach: {}\n");
    await place.run(["run"], { code: 78, stderr: /^outbox: .*dispach.*\n$/ });
  });
  test.concurrent("also when the counts cannot be written; a reader who has gone is no trouble", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: TRUE } });
    expect(await place.sh("outbox run --once --json > /dev/full")).toEqual({
      code: 74,
      stdout: "",
      stderr: "outbox: cannot write to stdout: no space left on the device\n",
    });
    for (const line of ["outbox run --once --json >&-", "(outbox run --once --json; echo $? >&2) | true"])
      expect((await place.sh(line)).stderr).toBeOneOf(["", "0\n"]);
  });
});

describe("run", () => {
  const settings = { dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"; exit 0') }, run: { interval: "200ms" } };

  test.concurrent("delivers what comes, logs a line for each outcome and ends in order", async () => {
    using place = new Workstation().settings(settings);
    await place.enqueue({});
    const runner = place.background("run");
    await until(() => place.lines("log").length === 1);
    await place.enqueue({});
    await until(() => place.rows().every(({ status }) => status === "delivered"));
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    const lines = runner.said().split("\n");
    expect(lines).toHaveLength(3);
    for (const [at, line] of lines.slice(0, 2).entries())
      expect(line).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z info  ${at + 1} ping to seat-1 delivered \\(attempt 1, \\d+ms\\)$`));
  });
  test.concurrent("logs JSON where the settings say so", async () => {
    using place = new Workstation().settings({ ...settings, log: { format: "json" } });
    await place.enqueue({});
    const runner = place.background("run");
    await until(() => runner.said() !== "");
    runner.kill("SIGINT");
    expect(await runner.exited).toBe(0);
    expect(JSON.parse(runner.said())).toMatchObject({ level: "info", seq: 1, kind: "ping", status: "delivered", attempt: 1 });
  });
  test.concurrent("lets commands finish within the grace and claims nothing more", async () => {
    using place = new Workstation().waits().settings({ dispatch: { notify_template: WAITS, concurrency: 1 } });
    await place.enqueue({}, {});
    const runner = place.background("run");
    await until(() => existsSync(place.file("log")));
    runner.kill("SIGTERM");
    await taken(runner.pid);
    place.letGo();
    expect(await runner.exited).toBe(0);
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["delivered", 1],
      ["pending", 0],
    ]);
  });
  test.concurrent("ends the groups after the grace and settles them as failed attempts", async () => {
    using place = new Workstation();
    place.settings({
      dispatch: { notify_template: sh('echo $$ >> "$HOME/log"; sleep 60'), timeout: "30s" },
      run: { shutdown_grace: "100ms" },
    });
    await place.enqueue({}, {});
    const runner = place.background("run");
    await until(() => place.lines("log").length === 2);
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    for (const row of place.rows())
      expect(row).toMatchObject({ status: "pending", attempt: 1, last_error: "stopped by the runner before it finished" });
  });
  test.concurrent.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("ends at once at a second %s, and what ran is settled", async (signal, code) => {
    using place = new Workstation();
    place.settings({
      dispatch: { notify_template: sh('trap "" TERM; echo >> "$HOME/log"; while :; do sleep 0.05; done'), timeout: "30s" },
    });
    await place.enqueue({});
    for (const args of [["run"], ["run", "--once"]]) {
      rmSync(place.file("log"), { force: true });
      place.ageWaits();
      const runner = place.background(...args);
      await until(() => existsSync(place.file("log")));
      runner.kill("SIGTERM");
      // Of two that have not reached it yet the lower number comes first.
      await taken(runner.pid);
      // Two signals of one kind that arrive at once are one, and a third changes nothing.
      await until(() => {
        runner.kill(signal);
        return runner.hasExited();
      });
      expect(await runner.exited).toBe(code);
      expect(place.row(1)).toMatchObject({ status: "pending", last_error: "stopped by the runner before it finished" });
    }
    expect(place.row(1).attempt).toBe(2);
  });
  test.concurrent("that is to drain ends in order at a signal too", async () => {
    using place = new Workstation().waits().settings({ dispatch: { notify_template: WAITS, concurrency: 1 } });
    await place.enqueue({}, {}, {});
    const runner = place.background(...ONCE);
    await until(() => existsSync(place.file("log")));
    runner.kill("SIGTERM");
    await taken(runner.pid);
    place.letGo();
    expect(await runner.exited).toBe(0);
    expect(runner.said()).toBe("");
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["delivered", 1],
      ["pending", 0],
      ["pending", 0],
    ]);
  });
  test.concurrent("reads its settings again: a wrong new one is told once, a right one holds at once", async () => {
    using place = new Workstation();
    await place.enqueue({});
    const runner = place.background("run");
    await until(() => runner.said().includes("no dispatch.notify_template configured"));
    place.settingsText("dispach: {}\n");
    const complaints = (): number => runner.said().split("the settings from before stay in force").length - 1;
    runner.kill("SIGHUP");
    await until(() => complaints() > 0);
    runner.kill("SIGHUP");
    expect(place.row(1).attempt).toBe(0);
    place.settings(settings);
    runner.kill("SIGHUP");
    await until(() => place.row(1).status === "delivered");
    expect(runner.said()).toContain("settings read again from");
    expect(complaints()).toBe(1);
    // From now on it looks by itself.
    place.settingsText("dispach: {}\n");
    await until(() => complaints() === 2);
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
  });
  test.concurrent("claims no more from a database that has become newer, settles what runs and asks for a new start", async () => {
    using place = new Workstation().waits().settings({ dispatch: { notify_template: WAITS, concurrency: 1 } });
    await place.enqueue({}, {});
    const runner = place.background("run");
    await until(() => existsSync(place.file("log")));
    place.sql("UPDATE dispatch_schema SET version = version + 1");
    place.letGo();
    expect(await runner.exited).toBe(75);
    expect(place.rows().map(({ status, attempt }) => [status, attempt])).toEqual([
      ["delivered", 1],
      ["pending", 0],
    ]);
    expect(runner.said()).toMatch(/error database .* was brought to a newer schema; start the newer outbox\n$/);
  });
});
