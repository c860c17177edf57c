/** Waking, through the built program and real files: whoever enqueues, an idle `run` starts it at once, not at its interval. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hostClock } from "../../src/host.ts";
import { BINARY } from "./outbox.ts";
import { type Background, sh, until, Workstation } from "./running.ts";

setDefaultTimeout(60_000);

/** Its interval is an hour: what it starts it was woken for, or saw at the look of each second. */
function idle(): { place: Workstation; runner: Background } {
  const place = new Workstation().settings({ dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') }, run: { interval: "1h" } });
  return { place, runner: place.background("run") };
}

async function ended(runner: Background): Promise<void> {
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
}

/** Enters rows as a program of its own does: plain SQL, with what ids and envelope the library would make. */
const PLAIN_SQL = `
  import { Database } from "bun:sqlite";
  const [path, count] = process.argv.slice(-2);
  const db = new Database(path, { readwrite: true, create: false });
  db.run("PRAGMA busy_timeout = 10000");
  const insert = db.query(\`INSERT INTO dispatch_outbox (id, kind, deliver_to, payload, status, attempt, max_attempts, next_attempt_at,
    ack_required, created_at, updated_at, reason_code, reason_summary, source, actor, metadata)
    SELECT $id, kind, deliver_to, payload, 'pending', 0, 8, $now, 0, $now, $now, 'dispatch.pending.enqueued', 'entered', 'system', 'test', '{}'
    FROM dispatch_outbox LIMIT 1\`);
  for (let at = 0; at < Number(count); at += 1) {
    const now = Date.now() / 1000;
    insert.run({ $id: crypto.randomUUID().replaceAll("-", ""), $now: now });
    await Bun.sleep(15);
  }`;

/** Between the commit of each row and its claim, in milliseconds. */
function latencies(place: Workstation): number[] {
  return place
    .sql<{ ms: number }>(
      `SELECT (d.created_at - e.created_at) * 1000 AS ms FROM status_transitions e JOIN status_transitions d ON d.entity_id = e.entity_id
       WHERE e.status = 'pending' AND d.status = 'delivering' ORDER BY ms`,
    )
    .map(({ ms }) => ms);
}

test("a hundred commits of other processes wake it a hundred times", async () => {
  const { place, runner } = idle();
  using _ = place;
  await until(() => Bun.file(place.database).size > 0);
  await place.run(["enqueue", "--kind", "ping", "--to", "seat-1"], { stdout: /./ });
  await until(() => place.row(1).status === "delivered");
  const script = place.file("insert.ts");
  await Bun.write(script, PLAIN_SQL);
  const other = Bun.spawn([process.execPath, script, place.database, "99"], { stdio: ["ignore", "ignore", "inherit"] });
  expect(await other.exited).toBe(0);
  await until(() => place.rows().filter(({ status }) => status === "delivered").length === 100);
  await ended(runner);
  const ms = latencies(place);
  console.log(`woken after: p50 ${ms[50]?.toFixed(1)} ms, max ${ms[99]?.toFixed(1)} ms, the enqueuer's commit in it`);
  expect(ms).toHaveLength(100);
  // The look of each second would make half of them wait that long. A busy machine may delay a few.
  expect(ms.filter((each) => each > 500).length).toBeLessThan(5);
});

test("a row that enters by the SQL door wakes it", async () => {
  const { place, runner } = idle();
  using _ = place;
  await until(() => Bun.file(place.database).size > 0);
  await place.here(["enqueue", "--kind", "ping", "--to", "seat-1"], { stdout: /./ });
  await until(() => place.row(1).status === "delivered");
  place.sql("INSERT INTO dispatch_enqueue (kind, deliver_to) VALUES ('ping', 'seat-1')");
  await until(() => place.row(2).status === "delivered");
  expect(Math.max(...latencies(place))).toBeLessThan(1_500);
  await ended(runner);
});

test("a file that was replaced, a directory that went and came back, an emptied log: it is woken all the same", async () => {
  const place = new Workstation();
  using _ = place;
  const directory = place.file("data");
  const database = join(directory, "o.db");
  const enqueue = ["enqueue", "--db", database, "--kind", "ping", "--to"];
  mkdirSync(directory, { mode: 0o700 });
  place.settings({
    dispatch: { notify_template: ["/bin/sh", "-c", 'echo "$1" >> "$HOME/log"', "sh", "{deliver_to}"] },
    run: { interval: "1h" },
  });
  const runner = place.background("run", "--db", database);
  const arrives = async (to: string): Promise<void> => {
    await place.run([...enqueue, to], { stdout: /./ });
    const sinceMs = hostClock.monotonicMs();
    await until(() => place.lines("log").includes(to));
    expect(hostClock.monotonicMs() - sinceMs).toBeLessThan(5_000);
  };
  await until(() => Bun.file(database).size > 0);
  await arrives("first");
  const db = new Database(database);
  db.run("PRAGMA busy_timeout = 5000");
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  await arrives("after the log was emptied");
  await place.run([...enqueue, "elsewhere", "--db", place.file("other.db")].toSpliced(1, 2), { stdout: /./ });
  for (const end of ["-wal", "-shm"]) rmSync(`${database}${end}`, { force: true });
  renameSync(place.file("other.db"), database);
  await until(() => place.lines("log").includes("elsewhere"));
  await arrives("after the file was replaced");
  renameSync(directory, place.file("away"));
  await until(() => runner.said().includes("there is no directory"));
  mkdirSync(directory, { mode: 0o700 });
  await until(() => runner.said().includes("answers again"));
  await arrives("after the directory came back");
  expect(runner.said().match(/ error /g)).toHaveLength(1);
  await ended(runner);
});

test("idling costs next to nothing, and what happens beside the database nothing more", async () => {
  const { place, runner } = idle();
  using _ = place;
  await until(() => Bun.file(place.database).size > 0);
  await hostClock.sleep(1_500); // it has just started
  const before = switches(runner.pid);
  await hostClock.sleep(3_000);
  // A heartbeat a second and Bun's own housekeeping; a poll of 25 ms would be 120.
  expect(switches(runner.pid) - before).toBeLessThan(60);
  await ended(runner);
});

/** How often its main thread went to sleep. */
function switches(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

test("commands that enqueue from inside wake their own runner", async () => {
  using place = new Workstation();
  place.settings({
    dispatch: {
      env: { PATH: `${join(BINARY, "..")}:/usr/bin:/bin` },
      notify_template: sh(
        'n=$(wc -l < "$HOME/log" 2>/dev/null || echo 0); echo >> "$HOME/log"; [ "$n" -ge 4 ] || outbox enqueue --kind ping --to me',
      ),
    },
    run: { interval: "1h" },
  });
  await place.enqueue({});
  const runner = place.background("run");
  await until(() => place.lines("log").length === 0 && Bun.file(place.file("log")).size >= 5);
  await until(() => place.rows().every(({ status }) => status === "delivered"));
  expect(place.rows()).toHaveLength(5);
  await ended(runner);
});
