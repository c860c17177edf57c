/** Waking where the disk is slow: strace holds each sync of a program up. `scripts/system.ts` runs this. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { until, Workstation } from "../cli/running.ts";

setDefaultTimeout(60_000);

const ROWS = 9;

/** Commits rows, each when the runner is idle again, and says so after each; it does not let go of the database meanwhile. */
const PROGRAM = `
  import { Database } from "bun:sqlite";
  import { writeSync } from "node:fs";
  const db = new Database(process.argv.at(-1), { readwrite: true, create: false });
  db.run("PRAGMA busy_timeout = 10000");
  db.run("PRAGMA synchronous = FULL");
  for (let row = 1; row <= ${ROWS}; row += 1) {
    await Bun.sleep(300);
    db.run("INSERT INTO dispatch_enqueue (kind, deliver_to) VALUES ('ping', 'seat-1')");
    writeSync(1, "row " + row + "\\n");
  }`;

/** @returns when each of its commits was done, epoch seconds, as the kernel saw it */
async function commits(place: Workstation, syncMs: number): Promise<readonly number[]> {
  const [script, log] = [place.file("program.ts"), place.file("calls.txt")];
  await Bun.write(script, PROGRAM);
  const slow = ["-e", "trace=fsync,fdatasync,write", "-e", `inject=fsync,fdatasync:delay_enter=${syncMs * 1_000}`];
  const program = [process.execPath, script, place.database];
  const child = Bun.spawn(["strace", "-f", "-qq", "-ttt", ...slow, "-o", log, ...program], { stdio: ["ignore", "ignore", "inherit"] });
  expect(await child.exited).toBe(0);
  const calls = readFileSync(log, "utf8").split("\n");
  return Array.from({ length: ROWS }, (_, at) => {
    const call = calls.find((line) => line.includes(`write(1, "row ${at + 1}\\n`));
    return Number(/ (\d+\.\d+) write/.exec(call ?? "")?.[1]);
  });
}

// The runner is told of a commit before it can see it: how long before, only the disk knows.
test.each([20, 40, 60, 80, 110])("a runner sees a commit soon, also where a sync takes %d ms", async (syncMs) => {
  using place = new Workstation().settings({ dispatch: { notify_template: ["/bin/true"] }, run: { interval: "1h" } });
  const runner = place.background("run");
  await until(() => Bun.file(place.database).size > 0);
  const done = await commits(place, syncMs);
  await until(() => place.rows().filter(({ status }) => status === "delivered").length === ROWS);
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  const claims = place.history().filter(({ status }) => status === "delivering");
  const late = claims.map(({ created_at }, at) => (created_at - (done[at] ?? Number.NaN)) * 1_000);
  console.log(`syncs of ${syncMs} ms: claimed ${late.map((ms) => ms.toFixed(0)).join(", ")} ms after the commit`);
  // A busy machine may delay some.
  expect(late.toSorted((one, other) => one - other)[Math.floor(ROWS / 2)]).toBeWithin(-20, 30);
});
