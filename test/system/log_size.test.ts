/**
 * What the write-ahead log of the database grows to under a steady load, with readers that stay for seconds. `scripts/system.ts` runs
 * this. While a reader stays, the log keeps whatever is committed; when it has gone, the next two commits bring it back to 4 MiB
 * (`journal_size_limit`), and where nobody commits any more, a runner that is idle does.
 */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { hostClock } from "../../src/host.ts";
import { BINARY } from "../cli/outbox.ts";
import { type Background, until, Workstation } from "../cli/running.ts";

setDefaultTimeout(150_000);

const MIB = 1_048_576;
const LIMIT_MIB = 4;
const READERS = 4;
/** Each reader stays until the log has grown by twice the limit. */
const GROWN_MIB = 2 * LIMIT_MIB;

const logMiB = (place: Workstation): number => (statSync(`${place.database}-wal`, { throwIfNoEntry: false })?.size ?? 0) / MIB;

/** A reader that sees the database as it is now, until it is disposed of. */
function reader(place: Workstation): Disposable {
  const db = new Database(place.database, { readonly: true });
  db.run("BEGIN");
  db.query("SELECT count(*) FROM dispatch_outbox").get();
  return {
    [Symbol.dispose]() {
      db.run("COMMIT");
      db.close();
    },
  };
}

const BATCH = Array.from({ length: 40 }, (_, at) => ({ deliver_to: `seat-${at % 4}`, body: { text: "x".repeat(4_000) } }));

/** Two loops of processes that enqueue, of their own, until they are told to stop. */
function load(place: Workstation): { stop(): Promise<void> } {
  writeFileSync(place.file("batch"), BATCH.map((request) => `${JSON.stringify({ kind: "ping", ...request })}\n`).join(""));
  rmSync(place.file("stop"), { force: true });
  const line = `while ! [ -e stop ]; do "${BINARY}" enqueue --batch batch >/dev/null || exit; done`;
  const loops = [1, 2].map(() =>
    Bun.spawn(["/bin/sh", "-c", line], { cwd: place.home, env: place.env(), stdio: ["ignore", "ignore", "inherit"] }),
  );
  return {
    async stop() {
      writeFileSync(place.file("stop"), "");
      for (const loop of loops) expect(await loop.exited).toBe(0);
    },
  };
}

function busy(): { readonly place: Workstation; readonly runner: Background } {
  const place = new Workstation().settings({ dispatch: { notify_template: ["/bin/true"], per_destination: 8 } });
  return { place, runner: place.background("run") };
}

async function ended(runner: Background): Promise<void> {
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  expect(runner.said().match(/ (?:error|warn) /g)).toBeNull();
}

test("a reader that comes again and again lets the log grow only while it stays", async () => {
  const { place, runner } = busy();
  using _ = place;
  await place.enqueue({});
  const enqueuers = load(place);
  const peaks: string[] = [];
  for (let round = 0; round < READERS; round += 1) {
    {
      using _ = reader(place);
      const grows = logMiB(place) + GROWN_MIB;
      await until(() => logMiB(place) > grows);
    }
    const peak = logMiB(place);
    const gone = hostClock.monotonicMs();
    // The file is cut by the first commit that begins the log anew.
    await until(() => logMiB(place) <= LIMIT_MIB);
    peaks.push(`${peak.toFixed(1)} MiB, back at ${logMiB(place).toFixed(1)} MiB after ${(hostClock.monotonicMs() - gone).toFixed(0)} ms`);
  }
  await enqueuers.stop();
  console.log(peaks.join("\n"));
  await ended(runner);
});

test("a log that a reader let grow is emptied when it has gone, also if nothing is committed any more", async () => {
  const { place, runner } = busy();
  using _ = place;
  await place.enqueue({});
  {
    using _ = reader(place);
    const enqueuers = load(place);
    await until(() => logMiB(place) > 2 * GROWN_MIB);
    await enqueuers.stop();
    await until(() => place.rows().every(({ status }) => status === "delivered"));
  }
  const peak = logMiB(place);
  expect(peak).toBeGreaterThan(LIMIT_MIB);
  const gone = hostClock.monotonicMs();
  await until(() => logMiB(place) <= LIMIT_MIB);
  console.log(`${peak.toFixed(1)} MiB, back at ${logMiB(place).toFixed(1)} MiB after ${(hostClock.monotonicMs() - gone).toFixed(0)} ms`);
  expect(place.sql<{ integrity_check: string }>("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  await ended(runner);
});
