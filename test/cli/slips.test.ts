/** What is typed wrong, or right and yet impossible: every refusal is a sentence that says what to write instead. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ID, Place } from "./outbox.ts";

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

test.each([
  [":memory:", "--db :memory: is a database in memory, which nobody could read again"],
  ["file:x?mode=memory", "--db file:x?mode=memory is an address"],
  ["FILE:x", "--db FILE:x is an address"],
  ["postgres://host/x", "--db postgres://host/x is an address"],
])("a database is a file, not %s", async (name, said) => {
  using place = new Place();
  const refused = { code: 2, stderr: `outbox: ${said}; name a file; one that is really called so is ./${name}\n` };
  await place.run(["--db", name, ...ENQUEUE], refused);
  for (const command of [["ls"], ["run", "--once"]]) await place.here(["--db", name, ...command], refused);
  await place.here(["ls"], { code: 2, stderr: /^outbox: OUTBOX_DB .* is / }, { env: { OUTBOX_DB: name } });
  expect(readdirSync(place.home)).toEqual([]);
});

test("a file that is really called :memory: is reached by its directory", async () => {
  using place = new Place();
  await place.run(["--db", "./:memory:", ...ENQUEUE], { stdout: ID });
  expect(existsSync(join(place.home, ":memory:"))).toBe(true);
});

test("what is no regular file is refused by every command", async () => {
  using place = new Place();
  spawnSync("mkfifo", [join(place.home, "pipe")]);
  writeFileSync(join(place.home, "s.yaml"), "dispatch: {notify_template: [/bin/true]}\n", { mode: 0o600 });
  for (const [name, what] of [
    [join(place.home, "pipe"), "a pipe"],
    ["/dev/null", "a device"],
    [place.home, "a directory"],
  ] as const) {
    const at = ["--config", join(place.home, "s.yaml"), "--db", name];
    const refused = { code: 74, stderr: `outbox: database ${name} is not a regular file (it is ${what}); name a file\n` };
    await place.run([...at, ...ENQUEUE], refused);
    for (const command of [["ls"], ["show", "1"], ["stats"], ["migrate"], ["migrate", "--install"], ["run", "--once"]])
      await place.here([...at, ...command], refused);
  }
});

test("a file that has lost a table is told by every command that needs it, and by migrate", async () => {
  using place = new Place();
  await place.here(ENQUEUE, { stdout: ID });
  const { Database } = await import("bun:sqlite");
  using db = new Database(place.database);
  db.run("DROP TABLE status_transitions");
  const lost = /^outbox: database \S+ is not a whole outbox database: status_transitions .*missing; restore it from a copy\n$/;
  for (const command of [ENQUEUE, ["show", "1"], ["migrate"]]) await place.here(command, { code: 74, stderr: lost });
});

test("a file size limit is told as one, not as a failing disk", async () => {
  using place = new Place();
  const { code, stderr } = await place.sh("ulimit -f 8; exec outbox enqueue --kind ping --to seat-1");
  expect([code, stderr]).toEqual([
    74,
    `outbox: database ${place.database}: a file size limit of 4096 bytes is reached; raise it (ulimit -f), or remove it for outbox\n`,
  ]);
});

test.each([
  ["file/body", "a part of its path is not a directory; check the path", 65],
  ["n".repeat(300), "a name in it is too long; check the path", 65],
  [".", "it is a directory; name a file", 65],
])("a body file that cannot be read is told in a sentence: %#", async (name, said, code) => {
  using place = new Place();
  writeFileSync(join(place.home, "file"), "");
  await place.here([...ENQUEUE, "--body-file", name], { code, stderr: `outbox: cannot read ${name}: ${said}\n` });
});

test("a device is read like any other file, within the limit", async () => {
  using place = new Place();
  await place.run([...ENQUEUE, "--text-file", "/dev/null"], { stdout: ID });
  const [shown] = await place.look(["show", "1"]);
  expect(JSON.parse(String(shown?.["payload"]))).toMatchObject({ body: { text: "" } });
  await place.here([...ENQUEUE, "--body-file", "/dev/null"], { code: 65, stderr: /empty/ });
  await place.run([...ENQUEUE, "--text-file", "/dev/zero"], { code: 65, stderr: /^outbox: \/dev\/zero holds more than \d+ bytes; / });
  await place.run([...ENQUEUE, "--text-file", "/dev/stdin"], { stdout: ID }, { stdin: "hello" });
  expect((await place.sh("outbox enqueue --kind ping --to seat-1 --text-file /dev/stdin </dev/null")).code).toBe(0);
  expect((await place.sh("mkfifo p; (echo hi >p) & outbox enqueue --kind ping --to seat-1 --text-file p")).code).toBe(0);
});

test("a retry-for that the backoff cannot meet is a slip of the flag, not of the settings", async () => {
  using place = new Place();
  const refused = (begin: string) => ({
    code: 2,
    stderr: new RegExp(`^outbox: --retry-for ${begin}.*; name a shorter time, or use --max-attempts\n$`),
  });
  await place.here([...ENQUEUE, "--retry-for", "36500d"], refused("36500d cannot be met: it would take \\d+ attempts"));
  writeFileSync(join(place.home, "s.yaml"), "dispatch: {backoff: {base: 0s}}\n", { mode: 0o600 });
  await place.here(
    ["--config", join(place.home, "s.yaml"), ...ENQUEUE, "--retry-for", "1h"],
    refused("1h cannot be met: it needs a backoff that waits"),
  );
  const batch = { stdin: '{"kind": "a", "deliver_to": "b"}\n' };
  await place.here(["enqueue", "--batch", "-", "--retry-for", "36500d"], refused("36500d"), batch);
});

test("heartbeats that would end before they begin are a slip of the flags", async () => {
  using place = new Place();
  const revive = ["revive", "d", "--reset-epoch", "2000000000"];
  await place.run([...revive, "--delay", "36500d"], {
    code: 2,
    stderr: "outbox: --reset-epoch and --ttl end the heartbeats before --delay lets them begin; an expiry lies after the first attempt\n",
  });
  await place.here([...revive, "--not-before", "2100-01-01"], { code: 2, stderr: /before --not-before lets them begin/ });
  await place.here(["revive", "d", "--reset-epoch", "0", "--delay", "36500d"], { stdout: ID });
});

test("ack says which of the two variables is missing", async () => {
  using place = new Place();
  const missing = (name: string) => ({ code: 2, stderr: new RegExp(`^outbox: ack needs ID and TOKEN: ${name} is not set; `) });
  await place.run(["ack"], missing("OUTBOX_ACK_TOKEN"), { env: { OUTBOX_ID: "a" } });
  await place.here(["ack"], missing("OUTBOX_ID"), { env: { OUTBOX_ACK_TOKEN: "a" } });
});

test.each([
  ["max_atempts", "did you mean max_attempts?"],
  ["dispatch.dead_letter.max_attempts", "write its last word alone: max_attempts"],
  ["nonsense-of-some-kind", "one of enqueued, attempt, "],
])("ls knows every reason: %s", async (word, hint) => {
  using place = new Place();
  await place.here(["ls", "--reason", word], {
    code: 2,
    stderr: new RegExp(`^outbox: --reason "${RegExp.escape(word)}" is no reason; ${RegExp.escape(hint)}`),
  });
});

test("a home that is no absolute path is looked up like a missing one", async () => {
  using place = new Place();
  const path = async (env: Record<string, string>): Promise<string> =>
    (await place.start(["config", "path", "--json"], { env })).stderr.replace(/^.*init writes /, "");
  const child = Bun.spawnSync([process.execPath, "-e", "console.log(require('node:os').homedir())"], { env: {} });
  expect(await path({ HOME: "relative" })).toStartWith(`${child.stdout.toString().trim()}/.config/`);
});

test("a time zone that nobody knows is told when a local time is read, once", async () => {
  using place = new Place();
  const env = { TZ: "Europe/Berlni" };
  const stderr = /^outbox: TZ "Europe\/Berlni" is no time zone known here, so local times are read as UTC; .*\n$/;
  await place.run([...ENQUEUE, "--not-before", "2030-01-01 18:00", "--expires-at", "2031-01-01"], { stdout: ID, stderr }, { env });
  await place.run([...ENQUEUE, "--not-before", "2030-01-01T18:00:00Z"], { stdout: ID }, { env });
  await place.run([...ENQUEUE, "--delay", "1h"], { stdout: ID }, { env });
  for (const TZ of ["Europe/Berlin", ":Europe/Berlin", "UTC", ""])
    await place.run([...ENQUEUE, "--not-before", "2030-01-01 18:00"], { stdout: ID }, { env: { TZ } });
});

test("init - writes to stdout, and init without a name is refused", async () => {
  using place = new Place();
  const text = await place.run(["init", "-"], { stdout: /./ });
  await place.run(["init", "s.yaml"], { stdout: /s\.yaml/ });
  expect(`${text}\n`).toBe(readFileSync(join(place.home, "s.yaml"), "utf8"));
  expect(readdirSync(place.home)).toEqual(["s.yaml"]);
  await place.run(["init", ""], { code: 2, stderr: /^outbox: init names no file; / });
  mkdirSync(join(place.home, "d"));
  await place.here(["init", `d/${"n".repeat(300)}`], { code: 74, stderr: /: a name in it is too long\n$/ });
});

test("one message named twice is one message, whether it is changed or refused", async () => {
  using place = new Place();
  const id = await place.here(ENQUEUE, { stdout: ID });
  await place.run(["retry", "1", id, "1"], {
    code: 1,
    stdout: "0 messages put back\n",
    stderr: "outbox: cannot retry 1: it is pending; only dead or expired messages can be retried\n",
  });
  expect(await place.look(["purge", "1", id, "--json"].slice(0, 3))).toEqual([{ changed: 1, refused: 0 }]);
});
