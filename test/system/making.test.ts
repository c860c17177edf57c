/** A first message while another process is just making the database: strace holds one of them up in the middle. `scripts/system.ts` runs this. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { BINARY, ID } from "../cli/outbox.ts";
import { until, Workstation } from "../cli/running.ts";

setDefaultTimeout(60_000);

const HELD_UP_MS = 2_000;
const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

// SQLite, refused a file that is not there, at once asks for it again only to read: what was made between the two it could not write.
test.each([1, 2])("a database that appears after look %d for it can be written", async (look) => {
  using place = new Workstation();
  const log = place.file("calls.txt");
  const held = ["-P", place.database, "-e", "trace=openat", "-e", `inject=openat:delay_exit=${HELD_UP_MS * 1_000}:when=${look}`];
  const first = Bun.spawn(["strace", "-f", "-qq", ...held, "-o", log, BINARY, ...ENQUEUE], {
    cwd: place.home,
    env: place.env(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  await until(() => place.lines("calls.txt").length > 0);
  const second = await place.run(ENQUEUE, { stdout: ID });
  // Else the second did not come in between, and nothing is shown.
  expect(first.exitCode).toBeNull();
  const [stdout, stderr] = await Promise.all([first.stdout.text(), first.stderr.text()]);
  expect({ code: await first.exited, stderr }).toEqual({ code: 0, stderr: "" });
  expect(place.rows().map(({ id }) => id)).toEqual([second, stdout.trim()]);
});
