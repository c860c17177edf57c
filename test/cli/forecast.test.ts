/** `run --dry-run` through the built program: it lists what the next drain does, and leaves every byte as it is. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sh, Workstation } from "./running.ts";

setDefaultTimeout(60_000);

const DRY = ["run", "--dry-run"];
const TAKES = { dispatch: { notify_template: sh("exit 0") } };

/** A message for every way: sent, ended, kept by a hold, by its key, by a fault. */
async function mixed(place: Workstation): Promise<void> {
  place.settings({
    dispatch: { ...TAKES.dispatch, max_attempts: 3, routes: { broken: { notify_template: ["no-such-command"] } } },
  });
  await place.enqueue(
    {},
    { ordering_key: "job" },
    { ordering_key: "job", deliver_to: "seat-2", ack_required: true },
    { ordering_key: "job" },
    { kind: "broken" },
    { deliver_to: "held" },
    { not_before: 4_000_000_000 },
    { ordering_key: "job-2", deliver_to: "held" },
    { ordering_key: "job-2" },
    { deliver_to: "late" },
    { deliver_to: "spent", max_attempts: 2 },
  );
  place.sql("UPDATE dispatch_outbox SET expires_at = created_at WHERE deliver_to = 'late'");
  place.sql("UPDATE dispatch_outbox SET max_attempts = 1 WHERE seq = 11");
  for (const [attempt, lease] of [
    [1, 60],
    [2, 30],
  ])
    place.sql(`UPDATE dispatch_outbox SET status = 'delivering', attempt = ${attempt}, lock_token = 't${attempt}', holder = 'gone 1 1',
      max_attempts = 2, updated_at = unixepoch() - ${lease}, next_attempt_at = unixepoch() - ${lease}, reason_code = 'dispatch.delivering.attempt'
      WHERE seq = 11`);
  await place.here(["hold", "--to", "held"], { stdout: /./ });
}

test.concurrent("it lists what the run after it does, and says what is left and why", async () => {
  using place = new Workstation();
  await mixed(place);
  const fault = /^outbox: route "broken": no command "no-such-command" in PATH .*\n/;
  const listed = await place.json(DRY, { code: 78, stderr: fault });
  expect(listed.map(({ seq, action, reason, command }) => [seq, action, reason, command])).toEqual([
    [11, "die", "max_attempts", null],
    [1, "send", "attempt", "/bin/sh"],
    [2, "send", "attempt", "/bin/sh"],
    [3, "send", "attempt", "/bin/sh"],
    [10, "expire", "deadline", null],
  ]);
  expect(Object.keys(listed[0] ?? {})).toEqual([
    "seq",
    "id",
    "kind",
    "deliver_to",
    "ordering_key",
    "status",
    "attempt",
    "max_attempts",
    "next_attempt_at",
    "expires_at",
    "source",
    "action",
    "reason",
    "command",
    "error",
  ]);
  await place.run(DRY, {
    code: 78,
    stdout:
      /^SEQ +KIND +TO +KEY +WOULD\n 11 +ping +spent +die: max_attempts\n +1 +ping +seat-1 +send attempt 1\/3 with \/bin\/sh\n(.*\n){2} 10 +ping +late +expire\n$/,
    stderr: /\noutbox: left as they are: 1 by a fault, 2 held, 2 behind another of the same key\n$/,
  });
  const before = place.history().at(-1)?.id ?? 0;
  await place.here(["run", "--once"], { code: 78, stderr: /./ });
  const moved = place.history().filter(({ id, reason_code }) => id > before && !reason_code.endsWith("transport_ok"));
  const seqOf = new Map(place.rows().map(({ id, seq }) => [id, seq]));
  const sorted = (rows: readonly (readonly unknown[])[]): unknown => rows.map((row) => JSON.stringify(row)).toSorted();
  expect(sorted(moved.map(({ entity_id, reason_code }) => [seqOf.get(entity_id), reason_code.split(".").at(-1)]))).toEqual(
    sorted(listed.map(({ seq, reason }) => [seq, reason])),
  );
});

test.concurrent("it changes no byte, also beside a lock and with outcomes that stand only in the log", async () => {
  using place = new Workstation().settings(TAKES);
  await place.enqueue({}, {});
  await place.json(DRY);
  using writer = new Database(place.database, { readwrite: true, create: false });
  writer.run("PRAGMA wal_autocheckpoint = 0");
  writer.run("UPDATE dispatch_outbox SET user_id = 'x'");
  const bytes = (): string[] => ["", "-wal"].map((end) => Bun.hash(readFileSync(place.database + end)).toString());
  const before = bytes();
  writer.run("BEGIN IMMEDIATE");
  expect((await place.json(DRY)).length).toBe(2);
  expect(bytes()).toEqual(before);
  writer.run("ROLLBACK");
});

test.concurrent("it reads a file that may not be written", async () => {
  using place = new Workstation().settings(TAKES);
  await place.enqueue({});
  chmodSync(place.database, 0o400);
  expect((await place.look(DRY)).map(({ seq }) => seq)).toEqual([1]);
});

test.concurrent("it makes no database, and says that there is none", async () => {
  using place = new Workstation().settings(TAKES);
  await place.run(DRY, {
    code: 1,
    stderr: `outbox: no database at ${place.database}; name one with --db, or make it with the first \`outbox enqueue\`\n`,
  });
  expect(existsSync(place.database)).toBeFalse();
  expect(readdirSync(place.home)).toEqual([".config"]);
});

test.concurrent("it goes over all sources; one that is not there is told and passed over", async () => {
  using place = new Workstation();
  const shop = join(place.home, "shop.db");
  place.settings({ ...TAKES, sources: { shop, gone: join(place.home, "gone.db") } });
  await place.enqueue({});
  await place.here(["enqueue", "--kind", "order", "--to", "b", "--db", shop], { stdout: /./ });
  const listed = await place.json(DRY, { code: 1, stderr: /^outbox: no database at .*gone\.db; .*\n$/ });
  expect(listed.map(({ source, seq, kind }) => [source, seq, kind])).toEqual([
    ["default", 1, "ping"],
    ["shop", 1, "order"],
  ]);
  await place.here([...DRY, "--source", "shop"], { stdout: /^SEQ +KIND +TO +WOULD\n +1 +order +b +send attempt 1\/8 with \/bin\/sh\n$/ });
  await place.here(DRY, { code: 1, stdout: /^SOURCE +SEQ .*\ndefault +1 .*\nshop +1 .*\n$/, stderr: /gone\.db/ });
});

test.concurrent("where there is nothing to do it says so, and prints nothing for machines", async () => {
  using place = new Workstation().settings(TAKES);
  await place.enqueue({ not_before: 4_000_000_000 });
  await place.run(DRY, { stderr: "outbox: nothing is due\n" });
  await place.here([...DRY, "--once", "--json"]);
  await place.here(["hold", "--all"], { stdout: /./ });
  await place.enqueue({});
  await place.here(DRY, { stderr: "outbox: nothing would be sent or ended\noutbox: left as they are: 1 held\n" });
});

test.concurrent("without a template it exits as the run would, and settings that are wrong are told as by the run", async () => {
  using place = new Workstation();
  await place.enqueue({});
  await place.run(DRY, {
    code: 78,
    stderr:
      /^outbox: no dispatch\.notify_template configured; .*\noutbox: nothing would be sent or ended\noutbox: left as they are: 1 by a fault\n$/,
  });
  place.settings({ dispatch: { on_config_error: "fail" } });
  await place.run(DRY, { stdout: /fail attempt 1\/8: no dispatch\.notify_template configured\n$/ });
  place.settings({ dispatch: { routes: { other: { notify_template: ["true"] } } } });
  await place.run(DRY, { stdout: /fail attempt 1\/8: no route for kind "ping" and no dispatch\.notify_template\n$/ });
  place.settings({ dispach: {} });
  await place.run(DRY, { code: 78, stderr: /dispach/ });
});
