/** Several runners of the built program at once, some of them killed: what the history and the commands say afterwards. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { hostClock } from "../../src/host.ts";
import { freeze } from "../fixtures/frozen.ts";
import { sh, until, Workstation } from "../cli/running.ts";
import { check, executions } from "./invariants.ts";

setDefaultTimeout(60_000);

/** Notes its start and its end. `$3` is how long it takes. */
const RECORD = 'echo "start $1 $2 $$" >> "$HOME/log"; sleep "$3"; echo "end $1 $2 $$" >> "$HOME/log"; exit 0';

function recording(seconds: number, settings: Readonly<Record<string, unknown>> = {}): Workstation {
  const place = new Workstation();
  const notify_template = [...sh(RECORD), String(seconds), place.home];
  return place.settings({ dispatch: { notify_template, timeout: "10s", backoff: { base: 0 }, ...settings } });
}

const many = (count: number): readonly Record<string, never>[] => Array.from({ length: count }, () => ({}));

test.concurrent("four runners share 200 messages: each is sent once, and none twice at a time", async () => {
  using place = new Workstation().settings({
    dispatch: { notify_template: sh('echo "start $1 $2 $$" >> "$HOME/log"; echo "end $1 $2 $$" >> "$HOME/log"'), concurrency: 4 },
  });
  await place.enqueue(...many(200));
  const counts = await Promise.all(Array.from({ length: 4 }, () => place.drain()));
  expect(counts.reduce((sum, { delivered = 0 }) => sum + delivered, 0)).toBe(200);
  check(place);
  expect(place.rows().every(({ status, attempt }) => status === "delivered" && attempt === 1)).toBeTrue();
  expect(executions(place)).toHaveLength(200);
});

test.concurrent(
  "runners that are killed at any moment lose nothing, and what they began is sent again at most max_attempts times",
  async () => {
    using place = recording(0.02, { concurrency: 3 });
    const random = numbers(20_261_129);
    await place.enqueue(...many(40).map(() => ({ max_attempts: 4 })));
    for (let round = 0; round < 12; round += 1) {
      const runner = place.background("run", "--once");
      await hostClock.sleep(30 + random() * 170); // any moment will do
      runner.kill("SIGKILL");
      await runner.exited;
      // The commands of a killed runner live on for a moment; each has the place in its arguments.
      await until(() => !isNamedInArguments(place.home));
      place.ageLeases();
    }
    await place.start(["run", "--once"]);
    place.ageLeases();
    await place.start(["run", "--once"]);
    check(place);
    expect(place.rows().filter(({ status }) => status !== "delivered" && status !== "dead_letter")).toEqual([]);
  },
);

test.concurrent("SIGTERM in the middle loses nothing and repeats nothing", async () => {
  using place = recording(0.05, { concurrency: 4 });
  const started = (): number => place.lines("log").filter((line) => line.startsWith("start")).length;
  for (const more of [1, 5, 12]) {
    await place.enqueue(...many(20));
    const before = started();
    const runner = place.background("run");
    await until(() => started() >= before + more);
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    expect(place.rows().filter(({ status }) => status === "delivering")).toEqual([]);
  }
  await place.drain();
  check(place);
  expect(place.rows().every(({ status, attempt }) => status === "delivered" && attempt === 1)).toBeTrue();
  expect(executions(place)).toHaveLength(60);
});

test.concurrent("a second runner takes nothing from a first that lives", async () => {
  using place = recording(0.5);
  await place.enqueue({});
  const first = place.background("run", "--once");
  await until(() => place.lines("log").length > 0);
  expect(await place.drain()).toMatchObject({ attempted: 0 });
  expect(await first.exited).toBe(0);
  check(place);
  expect(executions(place)).toHaveLength(1);
});

test.concurrent("a runner that was frozen until its lease was over changes nothing", async () => {
  using place = recording(2);
  await place.enqueue({});
  const frozen = place.background("run", "--once");
  await until(() => place.lines("log").length > 0);
  await freeze(frozen, place.database);
  await until(() => place.lines("log").length === 2);
  place.ageLeases();
  expect(await place.drain()).toMatchObject({ attempted: 1, delivered: 1 });
  const before = place.rows();
  frozen.kill("SIGCONT");
  expect(await frozen.exited).toBe(0);
  expect(place.rows()).toEqual(before);
  check(place);
  expect(place.row(1)).toMatchObject({ status: "delivered", attempt: 2 });
});

/** What ran at one time at most, of the commands of each group, by the order of their notes. */
function atOnce(place: Workstation, groupOf: (id: string) => string): Map<string, number> {
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  for (const line of place.lines("log")) {
    const [what, id = ""] = line.split(" ");
    const group = groupOf(id);
    running.set(group, (running.get(group) ?? 0) + (what === "start" ? 1 : -1));
    most.set(group, Math.max(most.get(group) ?? 0, running.get(group) ?? 0));
  }
  return most;
}

test.concurrent("a limit of 4 is never 5, with batches and four runners", async () => {
  using place = recording(0.02, { concurrency: 10 });
  await place.enqueue(...Array.from({ length: 90 }, (_, at) => ({ deliver_to: `seat-${at % 3}` })));
  await Promise.all(Array.from({ length: 4 }, () => place.drain()));
  check(place);
  const to = new Map(place.rows().map(({ id, deliver_to }) => [id, deliver_to]));
  const most = atOnce(place, (id) => to.get(id) ?? "");
  expect(most.size).toBe(3);
  for (const count of most.values()) expect(count).toBeLessThanOrEqual(4);
});

test.concurrent("the rows of 20 keys are sent in their order although runners die at any moment", async () => {
  using place = recording(0.01, { concurrency: 6 });
  const random = numbers(4_711);
  await place.enqueue(
    ...Array.from({ length: 100 }, (_, at) => ({ ordering_key: `key-${at % 20}`, deliver_to: `seat-${at % 20}`, max_attempts: 50 })),
  );
  const turn = async (): Promise<void> => {
    for (let round = 0; round < 6; round += 1) {
      const runner = place.background("run", "--once");
      await hostClock.sleep(60 + random() * 200);
      runner.kill("SIGKILL");
      await runner.exited;
      await hostClock.sleep(40); // the commands that it left behind end
      endLeasesOf(place, runner.pid);
    }
  };
  await Promise.all([turn(), turn()]);
  await place.start(["run", "--once"]);
  check(place);
  const rows = new Map(place.rows().map((row) => [row.id, row]));
  expect([...rows.values()].filter(({ status }) => status !== "delivered")).toEqual([]);
  const delivered = place.history().filter(({ status }) => status === "delivered");
  for (const own of Map.groupBy(delivered, ({ entity_id }) => rows.get(entity_id)?.ordering_key).values()) {
    const order = own.map(({ entity_id }) => rows.get(entity_id)?.seq ?? 0);
    expect(order).toEqual(order.toSorted((one, other) => one - other));
  }
  for (const count of atOnce(place, (id) => rows.get(id)?.ordering_key ?? "").values()) expect(count).toBeLessThanOrEqual(2);
});

/** Ends the leases of a runner that is dead, as if their time were over. */
function endLeasesOf(place: Workstation, pid: number): void {
  place.sql(`UPDATE dispatch_outbox SET next_attempt_at = next_attempt_at - 3600 WHERE status = 'delivering' AND holder LIKE '% ${pid} %'`);
}

test.concurrent(
  "after a cooldown there is one probe, although four runners start at once, and one after its runner was killed",
  async () => {
    using place = recording(3, { circuit: { failures: 3, cooldown: "1h" }, concurrency: 5 });
    await place.enqueue(...many(20));
    place.sql("UPDATE dispatch_destinations SET failures = 3, failed_at = 1, open_until = 2");
    const runners = Array.from({ length: 4 }, () => place.background("run"));
    const starts = (): string[] => place.lines("log").filter((line) => line.startsWith("start"));
    await until(() => starts().length === 1);
    await hostClock.sleep(500); // whoever else would probe has had the time
    expect(starts()).toHaveLength(1);
    const [holder] = place.sql<{ holder: string }>("SELECT holder FROM dispatch_outbox WHERE status = 'delivering'");
    const probing = runners.find(({ pid }) => pid === Number(holder?.holder.split(" ").at(-2)));
    probing?.kill("SIGKILL");
    await probing?.exited;
    await until(() => place.lines("log").length === 2); // its command ends, and nobody heard
    endLeasesOf(place, probing?.pid ?? 0);
    await until(() => starts().length === 2);
    await hostClock.sleep(500);
    expect(starts()).toHaveLength(2);
    for (const runner of runners) runner.kill("SIGTERM");
    for (const runner of runners) if (runner !== probing) expect(await runner.exited).toBe(0);
    check(place);
  },
);

test.concurrent("SIGTERM during commands of several sources settles them all and repeats none", async () => {
  using place = recording(0.3, { concurrency: 6 });
  const shop = place.file("shop.db");
  const settings = JSON.parse(await Bun.file(place.settingsFile).text()) as Record<string, unknown>;
  place.settings({ ...settings, database: place.database, sources: { shop } });
  await place.enqueue(...many(6));
  const stdin = Array.from({ length: 6 }, () => '{"kind":"ping","deliver_to":"seat-2"}\n').join("");
  await place.here(["enqueue", "--db", shop, "--batch", "-"], { stdout: /./ }, { stdin });
  const runner = place.background("run");
  await until(() => place.lines("log").filter((line) => line.startsWith("start")).length >= 5);
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  expect(place.rows().filter(({ status }) => status === "delivering")).toEqual([]);
  expect((await place.look(["ls", "--db", shop])).filter(({ status }) => status === "delivering")).toEqual([]);
  await place.drain();
  expect(place.lines("log").filter((line) => line.startsWith("start"))).toHaveLength(12);
  expect(place.rows().every(({ status, attempt }) => status === "delivered" && attempt === 1)).toBeTrue();
});

/** Whether a process has this among its arguments. */
function isNamedInArguments(text: string): boolean {
  return readdirSync("/proc").some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false; // it has just ended
    }
  });
}

/** Uniform numbers in [0, 1) from a seed. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
