/** `outbox stats` for machines that watch: --prometheus, --check; and that nothing is written by looking, or by idling. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hostClock } from "../../src/host.ts";
import { BINARY, ID } from "./outbox.ts";
import { sh, until, Workstation } from "./running.ts";

setDefaultTimeout(30_000);

const WEIRD = 'a"b\\c\nd\te\u001b[2J';
const ESCAPED = 'a\\"b\\\\c\\nd\\\\x09e\\\\x1b[2J';
const lines = (page: string, prefix: string): readonly string[] => page.split("\n").filter((line) => line.startsWith(prefix));

test("stats --prometheus tells of all sources in one page, whatever kinds and destinations are called", async () => {
  using place = new Workstation().settings({
    sources: { shop: "shop.db", gone: "gone.db" },
    dispatch: { notify_template: sh("exit 1"), circuit: { failures: 1 }, max_attempts: 1 },
  });
  await place.enqueue({ kind: WEIRD, deliver_to: WEIRD }, { kind: "later", not_before: hostClock.now() + 3_600 });
  await place.here(["enqueue", "--kind", "ping", "--to", "d", "--source", "shop"], { stdout: ID });
  await place.here(["hold", "--to", "d", "--source", "shop"], { stdout: /./ });
  await place.start(["run", "--once", "--source", "default"]);
  const left = { code: 74, stderr: /^outbox: source gone is left out: no database at .*gone\.db; / };
  const page = await place.run(["stats", "--prometheus"], { ...left, stdout: /./ });
  expect(lines(page, "outbox_attempts_total")).toEqual([
    `outbox_attempts_total{source="default",kind="${ESCAPED}",result="max_attempts"} 1`,
  ]);
  expect(lines(page, "outbox_dead_letters_total")).toEqual([
    `outbox_dead_letters_total{source="default",kind="${ESCAPED}",reason="max_attempts"} 1`,
  ]);
  expect(lines(page, "outbox_circuit")).toEqual([
    `outbox_circuit_open{source="default",to="${ESCAPED}"} 1`,
    'outbox_circuits_open{source="default"} 1',
    'outbox_circuits_open{source="shop"} 0',
  ]);
  expect(lines(page, "outbox_holds")).toEqual(['outbox_holds{source="default"} 0', 'outbox_holds{source="shop"} 1']);
  const [own, held] = lines(page, "outbox_oldest_due_seconds");
  expect(own).toBe('outbox_oldest_due_seconds{source="default"} 0'); // what is there is due later
  expect(held).toMatch(/^outbox_oldest_due_seconds\{source="shop"\} (?!0$)/); // held, and due
  expect(lines(page, 'outbox_dispatches{source="default"').filter((line) => !line.endsWith(" 0"))).toEqual([
    'outbox_dispatches{source="default",status="pending"} 1',
    'outbox_dispatches{source="default",status="dead_letter"} 1',
  ]);
  const types = lines(page, "# TYPE ");
  expect([types.length, new Set(types).size]).toEqual([8, 8]);
});

test("what is due is told while it waits, and is 0 again after the drain; a live claim is not due", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: sh('echo > "$HOME/begun"; cat "$HOME/go"'), timeout: "20s" } });
  const oldest = async (): Promise<number> => Number((await place.look(["stats"]))[0]?.["oldest_due_age"]);
  Bun.spawnSync(["mkfifo", place.file("go")]);
  await place.enqueue({});
  expect(await oldest()).toBeGreaterThan(0);
  const runner = place.background("run", "--once");
  await until(() => existsSync(place.file("begun")));
  expect(await oldest()).toBe(0);
  writeFileSync(place.file("go"), "");
  expect(await runner.exited).toBe(0);
  expect((await place.look(["stats"]))[0]).toMatchObject({
    depth: 0,
    oldest_due_age: 0,
    lag: { count: 1 },
    attempts: [{ kind: "ping", result: "transport_ok", count: 1 }],
  });
});

test("stats --check is silent within its limits, and tells each that is passed, of each source", async () => {
  using place = new Workstation().settings({ sources: { shop: "shop.db" } });
  await place.enqueue({}, {});
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--source", "shop"], { stdout: ID });
  await place.run(["stats", "--check"]);
  await place.here(["stats", "--check", "--max-age", "1h", "--max-dead", "0", "--max-pending", "2"]);
  await place.run(["stats", "--check", "--max-age", "0", "--max-pending", "1"], {
    code: 1,
    stdout:
      /^default: the oldest due message has waited for \S+, more than 0s\ndefault: 2 unfinished messages, more than 1\nshop: the oldest due message has waited for \S+, more than 0s\n$/,
  });
  place.sql("UPDATE dispatch_outbox SET next_attempt_at = next_attempt_at - 1000");
  await place.here(["stats", "--check"], { code: 1, stdout: /^default: the oldest due message has waited for 16m\d+s, more than 15m\n$/ });
  await place.here(["stats", "--check", "--max-dead", "0"]);
});

test("stats --check says 74 of what it cannot read, besides what it finds in the others", async () => {
  using place = new Workstation().settings({ sources: { gone: "gone.db" } });
  await place.enqueue({});
  const gone = /^outbox: source gone is left out: no database at .*; /;
  await place.run(["stats", "--check"], { code: 74, stderr: gone });
  await place.here(["stats", "--check", "--max-pending", "0"], {
    code: 74,
    stderr: gone,
    stdout: "default: 1 unfinished message, more than 0\n",
  });
  for (const flag of ["--check", "--prometheus"])
    await place.here(["stats", flag, "--source", "gone"], { code: 74, stderr: /^outbox: no database at .*gone\.db; / });
});

test("a database that --db names is called as the settings call it, else by its path: two of them are two to Prometheus", async () => {
  using place = new Workstation().settings({ sources: { shop: "shop.db" } });
  const [shop, other] = [join(place.settingsFile, "../shop.db"), place.file("other.db")];
  for (const path of [place.database, shop, other]) {
    await place.here(["enqueue", "--kind", "k", "--to", "d", ...(path === place.database ? [] : ["--db", path])], { stdout: ID });
    const page = await place.here(["stats", "--prometheus", "--db", path], { stdout: /./ });
    const name = path === shop ? "shop" : path === other ? other : "default";
    expect(lines(page, "outbox_holds")).toEqual([`outbox_holds{source="${name}"} 0`]);
  }
});

test("the answer of stats is in its exit code also where nobody reads its lines", async () => {
  using place = new Workstation().settings({ sources: { shop: "shop.db" } });
  await place.enqueue({});
  // The reader is gone before anything is written.
  const unread = (flags: string): number =>
    Bun.spawnSync(["bash", "-c", `exec 3> >(exec true); wait $!; exec "$0" stats ${flags} >&3`, BINARY], { env: place.env() }).exitCode;
  expect([unread("--check --max-pending 0 --source default"), unread("--check --source default"), unread("--source default")]).toEqual([
    1, 0, 0,
  ]);
  expect([unread("--check --max-pending 0"), unread("--prometheus"), unread("--json")]).toEqual([74, 74, 74]);
});

test.each([
  [["--json", "--prometheus"], "--json and --prometheus exclude each other"],
  [["--check", "--json"], "--json and --check exclude each other"],
  [["--prometheus", "--check"], "--prometheus and --check exclude each other"],
  [["--max-dead", "1"], "--max-dead is a limit of --check; add --check"],
  [["--check", "--max-dead", "few"], '--max-dead "few" is not a whole number'],
  [["--check", "--max-age", "5"], '--max-age "5" is a number without a unit'],
])("stats %j is refused", async (flags, said) => {
  using place = new Workstation();
  const refused = { code: 2, stderr: new RegExp(`^outbox: ${RegExp.escape(said)}`) };
  // One of them is asked of the program.
  await (flags[0] === "--max-dead" ? place.run(["stats", ...flags], refused) : place.here(["stats", ...flags], refused));
});

/** The bytes of a database and of its log. */
function bytes(path: string): readonly string[] {
  return [path, `${path}-wal`].map((file) => (existsSync(file) ? Bun.hash(readFileSync(file)).toString(16) : "none"));
}

/** A database in which something of everything stands that asks for no work now. */
async function resting(): Promise<Workstation> {
  const place = new Workstation().settings({
    sources: { shop: "shop.db" },
    dispatch: { notify_template: sh("! grep -q broken") },
    run: { interval: "1s" },
    retention: { delivered: "7d" },
  });
  await place.enqueue(
    { kind: "done" },
    { kind: "broken" },
    { kind: "held", deliver_to: "x" },
    { kind: "later", not_before: hostClock.now() + 3_600 },
  );
  await place.here(["hold", "--to", "x"], { stdout: /./ });
  await place.here(["enqueue", "--kind", "done", "--to", "d", "--source", "shop"], { stdout: ID });
  await place.start(["run", "--once"]);
  await place.start(["run", "--once"]); // what the first one had to forget or tell is over
  return place;
}

test("a run --once with nothing to do, stats and ls leave every byte as it was", async () => {
  using place = await resting();
  const databases = [place.database, join(place.settingsFile, "../shop.db")];
  const before = databases.map(bytes);
  expect((await place.json(["stats"]))[0]).toMatchObject({ status: { pending: 3, delivered: 1 }, holds: 1 });
  for (const args of [["run", "--once"], ["stats", "--prometheus"], ["stats", "--check", "--max-dead", "9"], ["ls"]]) {
    await place.start(args);
    expect([args, databases.map(bytes)]).toEqual([args, before]);
  }
});

test("an idle run writes nothing, however often it looks", async () => {
  using place = await resting();
  const runner = place.background("run");
  const looks = (): number => Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${runner.pid}/status`, "utf8"))?.[1]);
  await until(() => existsSync(`${place.database}-wal`) && looks() >= 20); // its start is over
  const watcher = new Database(place.database, { readonly: true });
  const version = (): unknown => watcher.query("PRAGMA data_version").get();
  const before = { bytes: bytes(place.database), version: version() };
  const began = looks();
  await until(() => looks() - began >= 15);
  expect({ bytes: bytes(place.database), version: version() }).toEqual(before);
  watcher.close();
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});
