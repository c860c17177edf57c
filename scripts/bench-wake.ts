/**
 * How soon an idle `outbox run` starts what another process enqueued, and what its idling costs: `bun scripts/bench-wake.ts [N]`.
 * Measured from the return of the enqueuer's commit: to the claim, as the history has it, which is the waking; and to the first
 * line of the command, beside what a command needs to start without outbox.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostEntropy } from "../src/host.ts";
import { enqueue } from "../src/store/enqueue.ts";
import { checkRequest } from "../src/core/request.ts";

const ROUNDS = Number(Bun.argv[2] ?? 100);
const outbox = join(import.meta.dir, "..", "dist", "outbox");
const place = mkdtempSync(join(tmpdir(), "outbox-wake-"));
const log = join(place, "log");
const database = join(place, "outbox.db");
const env = { PATH: "/usr/bin:/bin", HOME: place };
/** Tells the time as its first act. */
const COMMAND = ["/bin/date", "+%s.%N"];

try {
  writeFileSync(log, "");
  const notify_template = ["/bin/sh", "-c", `exec ${COMMAND.join(" ")} >> ${log}`];
  const settings = join(place, "settings.yaml");
  writeFileSync(settings, JSON.stringify({ dispatch: { notify_template, per_destination: 8 }, log: { level: "error" } }), { mode: 0o600 });
  const runner = Bun.spawn([outbox, "run", "--db", database, "--config", settings], { env, stdio: ["ignore", "ignore", "inherit"] });
  await Bun.sleep(1_500);
  const db = new Database(database, { readwrite: true, create: false, strict: true });
  db.run("PRAGMA busy_timeout = 10000");
  const bare: number[] = [];
  const claimed: number[] = [];
  const woken: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push((await started(() => void Bun.spawn(notify_template, { env, stdio: ["ignore", "ignore", "ignore"] }), round * 2)).afterMs);
    const { doneMs, afterMs } = await started(
      () => {
        const request = checkRequest({ kind: "ping", deliver_to: `seat-${round % 7}` });
        db.transaction(() => enqueue(db, request, Date.now() / 1_000, hostEntropy)).immediate();
      },
      round * 2 + 1,
    );
    woken.push(afterMs);
    const { at } = db
      .query<{ at: number }, []>("SELECT max(created_at) AS at FROM status_transitions WHERE status = 'delivering'")
      .get() ?? { at: Number.NaN };
    claimed.push(at * 1_000 - doneMs);
  }
  report("a command alone", bare);
  report("enqueued to claimed", claimed);
  report("enqueued to started", woken);
  const ticksBefore = cpuTicks(runner.pid);
  await Bun.sleep(10_000);
  console.log(`idle: ${cpuTicks(runner.pid) - ticksBefore} ticks of 10 ms in 10 s`);
  runner.kill();
  await runner.exited;
} finally {
  rmSync(place, { recursive: true, force: true });
}

/** Does it and waits for line `at` of the log. */
async function started(act: () => void, at: number): Promise<{ readonly doneMs: number; readonly afterMs: number }> {
  await Bun.sleep(60 + Math.random() * 60); // idle again, and at no special moment
  act();
  const doneMs = performance.timeOrigin + performance.now();
  for (;;) {
    const line = readFileSync(log, "utf8").split("\n")[at];
    if (line !== undefined && line.includes(".") && line.length > 19) return { doneMs, afterMs: Number(line) * 1_000 - doneMs };
    await Bun.sleep(5);
  }
}

function report(name: string, times: readonly number[]): void {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
  console.log(`${name}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms (${times.length})`);
}

/** User and system time of a process in ticks (Linux). */
function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
