/** A program that delivers what it entered, beside runners: by one of them each time, and by a runner when the program dies. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sh, until, Workstation } from "./running.ts";

setDefaultTimeout(60_000);

const LIBRARY = join(import.meta.dir, "../../src/index.ts");

/** Starts a program in a process of its own. `db` is open, `note()` appends a line to `log`. */
function program(station: Workstation, body: string): Bun.Subprocess {
  const file = station.file("program.ts");
  const head = `import { Database } from "bun:sqlite";
    import { appendFileSync } from "node:fs";
    import { deliver, enqueue } from ${JSON.stringify(LIBRARY)};
    const db = new Database(${JSON.stringify(station.database)}, { strict: true });
    db.run("PRAGMA busy_timeout = 5000");
    const note = (line: string) => appendFileSync(${JSON.stringify(station.file("log"))}, line + "\\n");\n`;
  writeFileSync(file, head + body);
  return Bun.spawn([process.execPath, file], {
    cwd: station.home,
    env: station.env(),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
}

const SENT_BY_RUNNER = 'echo "$1" >> "$HOME/log"; exit 0';

test("beside a live runner each message is delivered once, by the program or by the runner", async () => {
  using station = new Workstation().settings({ dispatch: { notify_template: sh(SENT_BY_RUNNER) } });
  await station.enqueue({ not_before: 4_000_000_000 });
  const runner = station.background("run");
  const child = program(
    station,
    `await Promise.all(Array.from({ length: 60 }, async (_, n) => {
      const { claim } = db.transaction(() => enqueue(db, { kind: "ping", deliver_to: "seat-" + (n % 3) }, { claim: true })).immediate();
      if (claim !== null) await deliver(db, claim, async ({ dispatch }) => { await Bun.sleep(n % 7); note(dispatch.id); });
    }));
    db.close();`,
  );
  expect(await child.exited).toBe(0);
  await until(() => station.rows().every(({ seq, status }) => seq === 1 || status === "delivered"));
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  const sent = station.lines("log");
  expect(sent).toHaveLength(60);
  expect(new Set(sent).size).toBe(60);
  expect(station.rows().every(({ seq, attempt }) => seq === 1 || attempt === 1)).toBeTrue();
});

test("a program that is killed in its handler leaves the message to a runner, once the lease is over", async () => {
  using station = new Workstation().settings({ dispatch: { notify_template: sh(SENT_BY_RUNNER) } });
  await station.enqueue({ not_before: 4_000_000_000 });
  const child = program(
    station,
    `const { claim } = enqueue(db, { kind: "ping", deliver_to: "seat-1" }, { claim: true, lease_seconds: 60 });
    await deliver(db, claim!, () => { note("began"); return new Promise(() => setInterval(() => {}, 1000)); });`,
  );
  await until(() => station.lines("log").length === 1);
  expect(await station.drain()).toMatchObject({ attempted: 0 });
  child.kill("SIGKILL");
  await child.exited;
  station.ageLeases();
  expect(await station.drain()).toMatchObject({ attempted: 1, delivered: 1 });
  expect(station.lines("log")).toEqual(["began", station.row(2).id]);
  expect(station.row(2)).toMatchObject({ status: "delivered", attempt: 2 });
});

test("what a program's handler failed at is a runner's at once", async () => {
  using station = new Workstation().settings({ dispatch: { notify_template: sh(SENT_BY_RUNNER) } });
  await station.enqueue({ not_before: 4_000_000_000 });
  const child = program(
    station,
    `const { claim } = enqueue(db, { kind: "ping", deliver_to: "seat-1" }, { claim: true });
    await deliver(db, claim!, () => Promise.reject(new Error("no answer")));`,
  );
  expect(await child.exited).toBe(0);
  expect(station.row(2)).toMatchObject({ status: "pending", attempt: 1, last_error: "no answer" });
  expect(await station.drain()).toMatchObject({ attempted: 1, delivered: 1 });
});
