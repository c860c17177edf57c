/** Many processes and one database: keys, locks, and readers who go away. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { hostClock } from "../../src/host.ts";
import { until, WAITS, Workstation } from "../cli/running.ts";

setDefaultTimeout(60_000);

const KEYED = ["enqueue", "--kind", "ping", "--to", "seat-1", "--dedup-key", "one"];

test.concurrent("20 processes that enqueue one key at once print one id, also where there was no database", async () => {
  using place = new Workstation();
  const answers = await Promise.all(Array.from({ length: 20 }, () => place.start(KEYED)));
  expect(new Set(answers.map(({ code, stderr }) => `${code} ${stderr}`))).toEqual(new Set(["0 "]));
  expect(new Set(answers.map(({ stdout }) => stdout)).size).toBe(1);
  expect(place.rows().map(({ id }) => `${id}\n`)).toEqual([answers[0]?.stdout ?? ""]);
});

test.concurrent("an outcome that a lock keeps from being written is written afterwards", async () => {
  using place = new Workstation().waits().settings({ dispatch: { notify_template: WAITS } });
  await place.enqueue({});
  const runner = place.background("run", "--once");
  await until(() => existsSync(place.file("log")));
  const lock = new Database(place.database);
  lock.run("PRAGMA busy_timeout = 10000");
  lock.run("BEGIN IMMEDIATE");
  place.letGo();
  // The lock is the point: longer than the runner waits for a lock in one go.
  await hostClock.sleep(3_000);
  expect(runner.hasExited()).toBeFalse();
  lock.run("COMMIT");
  lock.close();
  expect(await runner.exited).toBe(0);
  expect(runner.said()).toBe("");
  expect(place.row(1)).toMatchObject({ status: "delivered", attempt: 1 });
});

test.concurrent("a list ends quietly when its reader goes away, and says so when the disk is full", async () => {
  using place = new Workstation();
  await place.enqueue(...Array.from({ length: 2_000 }, (_, at) => ({ deliver_to: `seat-${at}-${"x".repeat(200)}` })));
  const cut = await place.sh("(outbox ls --json --limit 0; echo $? >&2) | head -1");
  expect(cut.stdout).toMatch(/^\{"seq":2000,.*\}\n$/);
  expect(cut.stderr).toBe("0\n");
  for (const line of ["outbox ls --json > /dev/full", "outbox ls > /dev/full", "outbox stats --json > /dev/full"])
    expect(await place.sh(line)).toEqual({ code: 74, stdout: "", stderr: "outbox: cannot write to stdout: no space left on the device\n" });
  for (const line of ["outbox ls --json >&-", "outbox ls >&- 2>&-", "outbox run --once >&- 2>&-"])
    expect(await place.sh(line)).toMatchObject({ stdout: "", stderr: "" });
});

test.concurrent("an id that nobody could read is exit 74, and asking again with its key answers it", async () => {
  using place = new Workstation();
  const line = `outbox ${KEYED.join(" ")}`;
  expect(await place.sh(`${line} > /dev/full`)).toMatchObject({
    code: 74,
    stdout: "",
    stderr: expect.stringMatching(/^outbox: .*\n$/) as string,
  });
  expect((await place.sh(`(${line}; echo $? >&2) | true`)).stderr).toMatch(/^(outbox: .*\n74|0)\n$/);
  expect(place.rows().map(({ id }) => id)).toEqual([await place.run(KEYED, { stdout: /./ })]);
});
