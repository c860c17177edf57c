/** Databases that are older or newer than the program: every command that opens one, and a runner that finds one newer. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { COMMANDS } from "../../src/cli/command.ts";
import { hostClock } from "../../src/host.ts";
import { breaches } from "../../src/store/invariants.ts";
import { MIGRATIONS } from "../../src/store/migrate.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { seqOf, STAGES, writeDatabase } from "../fixtures/store/stages.ts";
import { sh, until, Workstation } from "./running.ts";

/** Every command that there is, as command lines that open a database; null: it opens none. A new command does not pass unseen. */
const OPENS: Readonly<Record<string, readonly (readonly string[])[] | null>> = {
  enqueue: [
    ["enqueue", "--kind", "k", "--to", "d"],
    ["enqueue", "--kind", "k", "--to", "d", "--now"],
    ["enqueue", "--batch", "batch"],
  ],
  revive: [["revive", "s", "--reset-epoch", "0"]],
  run: [["run", "--once"], ["run", "--once", "--dry-run"], ["run"]],
  ls: [["ls"], ["ls", "--json", "--status", "pending"]],
  show: [["show", "1"]],
  stats: [["stats"], ["stats", "--json"], ["stats", "--prometheus"], ["stats", "--check"]],
  ack: [["ack", "9", "a".repeat(32)]],
  "inbox run": [["inbox", "run", "7", "--", "touch", "ran"]],
  retry: [
    ["retry", "11"],
    ["retry", "--all"],
  ],
  cancel: [
    ["cancel", "1"],
    ["cancel", "--to", "seat-1", "--dry-run"],
  ],
  purge: [
    ["purge", "7"],
    ["purge", "--all"],
  ],
  hold: [["hold"], ["hold", "--all"]],
  resume: [["resume", "--all"]],
  migrate: [["migrate"], ["migrate", "--install"]],
  init: null,
  config: null,
  version: null,
  help: null,
};
/** Those that bring an older schema forward; all others say that it is to be done. */
const FORWARD = ["enqueue", "revive", "run", "migrate"];

const lines = Object.entries(OPENS).flatMap(([name, all]) => (all ?? []).map((args) => [args.join(" ").slice(0, 60), args, name] as const));

/** One of each command is asked of the program, the others in this process. */
const isFirstOf = (name: string, args: readonly string[]): boolean => OPENS[name]?.[0] === args;

/** The bytes of such a database, made once: those that are refused look at no clock. */
const made = new Map<number, Uint8Array>();

/** A workstation whose database has a message in every stage. @param fresh whether a lease must still run */
function workstation(version = SCHEMA_VERSION, fresh = false): Workstation {
  const place = new Workstation().settings({ dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') } });
  mkdirSync(dirname(place.database), { recursive: true, mode: 0o700 });
  const known = fresh ? undefined : made.get(version);
  if (known === undefined) writeDatabase(place.database, hostClock.now(), version);
  else writeFileSync(place.database, known, { mode: 0o600 });
  if (!made.has(version)) made.set(version, readFileSync(place.database));
  writeFileSync(place.file("batch"), '{"kind":"k","deliver_to":"d"}\n');
  return place;
}

/** Every file beside the database, and what is in it. Who may only read cannot take an empty log away. */
function files(place: Workstation): Readonly<Record<string, string>> {
  const directory = dirname(place.database);
  const names = readdirSync(directory).filter((name) => !name.endsWith("-shm") && statSync(join(directory, name)).size > 0);
  return Object.fromEntries(names.map((name) => [name, Bun.hash(readFileSync(join(directory, name))).toString(36)]));
}

test("every command is in the table of those that open a database, or of those that do not", () => {
  expect(Object.keys(OPENS).toSorted()).toEqual(COMMANDS.map(({ name }) => name).toSorted());
});

describe("a database that is newer", () => {
  test.concurrent.each(lines)("is refused untouched by: %s", async (_, args, name) => {
    using place = workstation();
    place.sql(`UPDATE dispatch_schema SET version = ${SCHEMA_VERSION + 1}`);
    const before = files(place);
    expect(Object.keys(before)).toEqual(["outbox.db"]);
    const said = `has schema ${SCHEMA_VERSION + 1}, this outbox knows up to ${SCHEMA_VERSION}; use the newer outbox; the file was left untouched\n`;
    const expected = { code: 78, stderr: new RegExp(`^[^\n]*${said}$`) };
    await (isFirstOf(name, args) ? place.run(args, expected) : place.here(args, expected));
    expect(files(place)).toEqual(before);
  });

  test.concurrent.each(Object.entries(OPENS).filter(([, all]) => all === null))("does not keep anybody from: %s", async (name) => {
    using place = workstation();
    place.sql(`UPDATE dispatch_schema SET version = ${SCHEMA_VERSION + 1}`);
    const before = files(place);
    const code = name === "init" ? 1 : 0; // there are settings already
    await place.here(name === "config" ? ["config", "check"] : [name], { code, stdout: /^/, stderr: /^/ });
    expect(files(place)).toEqual(before);
  });

  test.concurrent("keeps no other from being counted or drained, at the start and later", async () => {
    using place = workstation(SCHEMA_VERSION, true);
    writeDatabase(place.file("newer.db"), hostClock.now());
    new Database(place.file("newer.db")).run("UPDATE dispatch_schema SET version = version + 1");
    const dispatch = { notify_template: sh('echo "$1" >> "$HOME/log"') };
    place.settings({ sources: { newer: place.file("newer.db") }, dispatch, run: { interval: "100ms" } });
    await place.run(["stats"], { code: 74, stdout: /./, stderr: /^outbox: source newer is left out: [^\n]* has schema [^\n]*\n$/ });
    const runner = place.background("run");
    await until(() => /source newer|newer\.db has schema/.test(runner.said()) && place.row(1).status === "delivered");
    await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: /./ });
    await until(() => place.row(STAGES.length + 1).status === "delivered");
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    expect(runner.said().split("has schema").length - 1).toBe(1);
  });
});

const OLDER = MIGRATIONS.map((_, index) => index + 1).slice(0, -1);

// Every command and every schema; which of them meet makes no difference to a command.
test.concurrent.each(
  lines.filter(([, , name]) => !FORWARD.includes(name)).map(([said, args], at) => [OLDER[at % OLDER.length] ?? 1, said, args] as const),
)("a database of schema %d is left as it is, and what to do is said, by: %s", async (version, _, args) => {
  using place = workstation(version);
  const before = files(place);
  await place.here(args, {
    code: 78,
    stderr: `outbox: database ${place.database} has schema ${version}, this outbox needs ${SCHEMA_VERSION}; run: outbox migrate\n`,
  });
  expect(files(place)).toEqual(before);
});

describe.each(OLDER)("a database of schema %d", (version) => {
  test.concurrent("is brought forward by run and delivered: what was in flight too, once its lease is over", async () => {
    using place = workstation(version, true);
    await place.run(["run", "--once"], { stderr: /^outbox: \d+ ping to \S+ died: [^\n]*\n$/ });
    const after = (stage: string): string => place.row(seqOf(stage)).status;
    for (const stage of [
      "due",
      "first of its key",
      "second of its key",
      "left by its runner",
      "failed, due again",
      "retried",
      "given back",
    ])
      expect([stage, after(stage)]).toEqual([stage, "delivered"]);
    for (const stage of ["claimed", "claimed in its key"]) expect([stage, after(stage)]).toEqual([stage, "delivering"]);
    for (const stage of ["delayed", "behind a claim", "sent, not acked"]) expect([stage, after(stage)]).toEqual([stage, "pending"]);
    expect([after("past its expiry"), after("on its last attempt"), after("dead")]).toEqual(["expired", "dead_letter", "dead_letter"]);
    expect(after("for who is held")).toBe(version === 1 ? "delivered" : "pending"); // there were no holds then
    expect(statSync(`${place.database}.schema-${version}.backup`).mode & 0o777).toBe(0o600);
    place.ageLeases();
    await place.run(["run", "--once"]);
    for (const stage of ["claimed", "claimed in its key", "behind a claim"]) expect([stage, after(stage)]).toEqual([stage, "delivered"]);
    using db = new Database(place.database);
    expect(breaches(db, hostClock.now())).toEqual([]);
    // In the order of the key, each once.
    const sent = place.lines("log").map((id) => Number.parseInt(id, 16));
    expect(new Set(sent).size).toBe(sent.length);
    expect(sent.indexOf(seqOf("second of its key"))).toBeGreaterThan(sent.indexOf(seqOf("first of its key")));
  });
});

describe("a runner whose database turns newer", () => {
  test.concurrent("while it has nothing to do ends with the code that asks for a new start", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: sh('echo "$1" >> "$HOME/log"') }, run: { interval: "100ms" } });
    await place.enqueue({});
    const runner = place.background("run");
    await until(() => place.row(1).status === "delivered");
    place.sql("UPDATE dispatch_schema SET version = version + 1");
    expect(await runner.exited).toBe(75);
    expect(runner.said()).toMatch(/error database \S+ was brought to a newer schema; start the newer outbox\n$/);
  });

  test.concurrent("settles what runs and claims nothing more, also of its other databases", async () => {
    using place = new Workstation();
    const dispatch = {
      notify_template: sh('echo "$1" >> "$HOME/log"; until test -e "$HOME/go"; do sleep 0.2; done'),
      concurrency: 2,
      per_destination: 1,
    };
    place.settings({ sources: { other: "./other.db" }, dispatch, run: { interval: "100ms" } });
    // So many of one destination that only the first of each database may run.
    await place.enqueue({}, {}, {});
    for (let n = 0; n < 3; n++) await place.here(["enqueue", "--kind", "k", "--to", "d", "--source", "other"], { stdout: /./ });
    const runner = place.background("run");
    await until(() => place.lines("log").length === 2);
    place.sql("UPDATE dispatch_schema SET version = version + 1");
    await until(() => /newer schema/.test(runner.said()));
    writeFileSync(place.file("go"), "");
    expect(await runner.exited).toBe(75);
    const other = new Database(join(dirname(place.settingsFile), "other.db"));
    const statuses = other
      .query<{ status: string }, []>("SELECT status FROM dispatch_outbox ORDER BY seq")
      .all()
      .map(({ status }) => status);
    other.close();
    expect([place.rows().map(({ status }) => status), statuses]).toEqual([
      ["delivered", "pending", "pending"],
      ["delivered", "pending", "pending"],
    ]);
    expect(place.lines("log")).toHaveLength(2);
  });
});
