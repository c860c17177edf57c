/**
 * How soon an idle `outbox run` claims what another process enqueued, and what its idling costs (goal 10). Measured from the return of
 * the enqueuer's commit to the claim, as the history has it, which is the waking.
 */
import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
import { checkRequest } from "../../src/core/request.ts";
import { hostEntropy } from "../../src/host.ts";
import { enqueue } from "../../src/store/enqueue.ts";
import type { Place } from "./place.ts";
import type { Line } from "./report.ts";
import { quantile } from "./rounds.ts";

/** After this long a wake was missed: the runner's own look comes each second. */
const MISSED_MS = 900;
const IDLE_MS = 30_000;
/** So long after its work a runner still compiles, and its runtime collects each second. Then both stop, and a forgotten one idles for days. */
const SETTLED_MS = 60_000;

export async function waking(place: Place, count: number): Promise<readonly Line[]> {
  const [database, settings] = [place.file("wake.db"), place.file("wake.yaml")];
  writeFileSync(settings, JSON.stringify({ dispatch: { notify_template: ["/bin/true"], per_destination: 8 }, log: { level: "error" } }), {
    mode: 0o600,
  });
  const start = (argv: readonly string[]) => Bun.spawn([...argv], { env: place.env, stdio: ["ignore", "ignore", "inherit"] });
  const runner = start(place.outbox("run", "--db", database, "--config", settings).argv);
  const idler = start([process.execPath, "-e", "setInterval(() => {}, 1_000)"]);
  try {
    await Bun.sleep(1_500);
    using db = new Database(database, { readwrite: true, create: false, strict: true });
    db.run("PRAGMA busy_timeout = 10000");
    const claimed: number[] = [];
    for (let round = 0; round < count; round += 1) {
      await Bun.sleep(60 + Math.random() * 60); // idle again, and at no special moment
      claimed.push(await once(db, round));
    }
    const missed = claimed.filter((ms) => ms > MISSED_MS).length;
    const idle = await idling(runner.pid, idler.pid);
    const at = (share: number): number => quantile(claimed, share);
    const note = `p50 ${at(0.5).toFixed(1)}, p95 ${at(0.95).toFixed(1)}, longest ${at(1).toFixed(1)} ms of ${count}`;
    return [
      { goal: 10, what: "commit to claim of an idle run: median", value: at(0.5), unit: "ms", atMost: 5, note },
      { goal: 10, what: "the longest of them", value: at(1), unit: "ms", atMost: 30, note: "a busy machine shows here first" },
      { goal: 10, what: "wakes that were missed", value: missed, unit: "", atMost: 0, note: `of ${count}; later than ${MISSED_MS} ms` },
      idle,
    ];
  } finally {
    runner.kill();
    idler.kill();
    await Promise.all([runner.exited, idler.exited]);
  }
}

async function once(db: Database, round: number): Promise<number> {
  const request = checkRequest({ kind: "ping", deliver_to: `seat-${round % 7}` });
  const { seq } = db.transaction(() => enqueue(db, request, Date.now() / 1_000, hostEntropy)).immediate();
  const doneMs = performance.timeOrigin + performance.now();
  const look = db.query<{ at: number | null }, [number]>(
    `SELECT min(t.created_at) AS at FROM status_transitions t JOIN dispatch_outbox o ON o.id = t.entity_id
     WHERE o.seq = ? AND t.status = 'delivering'`,
  );
  for (const end = performance.now() + 5_000; performance.now() < end;) {
    const at = look.get(seq)?.at ?? null;
    if (at !== null) return Math.max(0, at * 1_000 - doneMs);
    await Bun.sleep(5);
  }
  return Number.POSITIVE_INFINITY;
}

async function idling(runner: number, idler: number): Promise<Line> {
  const line = { goal: 10, what: "idle run: processor time above an idle Bun", unit: "%", atMost: 0.2 } as const;
  if (process.platform !== "linux") return { ...line, value: null, note: "known on Linux only" };
  await Bun.sleep(SETTLED_MS);
  const before = [cpuMs(runner), cpuMs(idler)] as const;
  await Bun.sleep(IDLE_MS);
  const [ours, theirs] = [cpuMs(runner) - before[0], cpuMs(idler) - before[1]];
  const value = ((ours - theirs) / IDLE_MS) * 100;
  return { ...line, value, note: `${ours} against ${theirs} ms in ${IDLE_MS / 1_000} s, after ${SETTLED_MS / 1_000} s without work` };
}

/** User and system time of a process, in ticks of 10 ms, as Linux counts them. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
