/** A process that is stopped while it has the write lock. It takes as long as an enqueue waits. `scripts/system.ts` runs this. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { ID } from "../cli/outbox.ts";
import { until, Workstation } from "../cli/running.ts";

setDefaultTimeout(60_000);

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

/** Writes, says so, and never commits. */
const WRITER = `
  import { Database } from "bun:sqlite";
  const db = new Database(process.argv.at(-1), { readwrite: true, create: false });
  db.run("BEGIN IMMEDIATE");
  db.run("INSERT INTO dispatch_enqueue (kind, deliver_to) VALUES ('ping', 'of the writer')");
  await Bun.write(process.argv.at(-2), "written");
  setInterval(() => db.inTransaction, 1_000);`; // a handle that nothing names any more is closed

test("keeps an enqueue out until that answers 75, and nothing is lost or left behind", async () => {
  using place = new Workstation();
  const first = await place.run(ENQUEUE, { stdout: ID });
  await Bun.write(place.file("writer.ts"), WRITER);
  const written = place.file("written");
  const writer = Bun.spawn([process.execPath, place.file("writer.ts"), written, place.database]);
  try {
    await until(() => Bun.file(written).size > 0);
    writer.kill("SIGSTOP");
    await place.run(ENQUEUE, { code: 75, stderr: /^outbox: database \S+: another process holds its write lock; try again\n$/ });
  } finally {
    writer.kill("SIGKILL");
    await writer.exited;
  }
  const second = await place.run(ENQUEUE, { stdout: ID });
  expect(place.rows().map(({ id }) => id)).toEqual([first, second]);
});
