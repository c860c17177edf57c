/** Stepping in: ack, retry, cancel, purge, migrate. */
import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { ID, Place } from "./outbox.ts";

const enqueue = (place: Place, ...flags: string[]): Promise<string> =>
  place.here(["enqueue", "--kind", "k", "--to", "d", ...flags], { stdout: ID });
const status = async (place: Place, id: string): Promise<unknown> => (await place.look(["show", id]))[0]?.["status"];

test("ack takes the token once, and says yes again", async () => {
  using place = new Place();
  const [answer] = await place.look(["enqueue", "--kind", "k", "--to", "d", "--ack"]);
  const [id, token] = [String(answer?.["id"]), String(answer?.["ack_token"])];
  await place.run(["ack", id, "wrong"], { code: 1, stderr: `outbox: cannot acknowledge ${id}: the token is not its token\n` });
  expect(await place.json(["ack", id, token])).toEqual([{ outcome: "acked" }]);
  await place.run(["ack"], {}, { env: { OUTBOX_ID: id, OUTBOX_ACK_TOKEN: token } });
  expect(await place.json(["ack", "1", token])).toEqual([{ outcome: "already_acked" }]);
  expect(await status(place, id)).toBe("acked");
});

test.each([
  [["99", "t"], "not_found"],
  [["nonsense", "t"], "not_found"],
  [["1", "t"], "not_requested"],
  [["2", "t"], "mismatch"],
])("ack %j answers %p, exit 1", async (words, outcome) => {
  using place = new Place();
  await enqueue(place);
  await enqueue(place, "--ack");
  expect(await place.look(["ack", ...words], { code: 1, stderr: /^outbox: cannot acknowledge / })).toEqual([{ outcome }]);
});

test("ack needs both words or the environment of a delivered command", async () => {
  using place = new Place();
  await place.run(["ack"], { code: 2, stderr: /OUTBOX_ID is not set/ });
  await place.run(["ack", "1"], { code: 2, stderr: /ack needs TOKEN besides ID/ });
});

test("cancel and retry do all that they can and exit 1 if one was refused", async () => {
  using place = new Place();
  await enqueue(place);
  await enqueue(place);
  const [counts] = await place.json(["cancel", "1", "99", "1", "2"], {
    code: 1,
    stderr: "outbox: cannot cancel 99: there is no such message\n",
  });
  expect(counts).toEqual({ changed: 2, refused: 1 });
  await place.run(["cancel", "1"], {
    code: 1,
    stdout: "0 messages cancelled\n",
    stderr: "outbox: cannot cancel 1: it is expired; only messages that wait can be cancelled\n",
  });
  await place.run(["retry", "1", "2"], { stdout: "2 messages put back\n" });
  await place.run(["retry", "1"], { code: 1, stdout: "0 messages put back\n", stderr: /^outbox: cannot retry 1: it is pending; / });
  expect(await status(place, "1")).toBe("pending");
});

test("an ID that a script left empty is told as what it is", async () => {
  using place = new Place();
  await enqueue(place);
  for (const verb of ["cancel", "purge"])
    await place.here([verb, ""], { code: 1, stdout: /^0 /, stderr: `outbox: cannot ${verb} "": there is no such message\n` });
  await place.here(["show", ""], { code: 1, stderr: 'outbox: there is no message ""\n' });
});

test("a message by number and by id is one message", async () => {
  using place = new Place();
  const id = await enqueue(place);
  expect(await place.look(["cancel", id, "1", "001", "--dry-run"])).toEqual([{ changed: 1, refused: 0 }]);
  expect(await place.look(["cancel", "1", id])).toEqual([{ changed: 1, refused: 0 }]);
});

test("retry needs a new expiry once the old one has passed", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--expires-at", "2020-01-01"], { stdout: ID, stderr: /expiry has passed/ });
  await place.here(["cancel", "1"], { stdout: /./ });
  await place.here(["retry", "1"], { code: 1, stdout: /^0 /, stderr: /give a new one with --expires-in/ });
  await place.here(["retry", "1", "--expires-in", "1h"], { stdout: "1 message put back\n" });
});

test("retry --expires-in counts from now, and what --rate would make due after it is refused", async () => {
  using place = new Place();
  for (let n = 0; n < 3; n++) await enqueue(place);
  await place.here(["cancel", "1", "2", "3"], { stdout: /./ });
  await place.here(["retry", "1", "2", "3", "--rate", "1/m", "--expires-in", "90s"], {
    code: 1,
    stdout: /^2 messages put back, one after the other until 20.*\n$/,
    stderr: "outbox: cannot retry 3: it would expire before it is due; give a later expiry with --expires-in, or a faster --rate\n",
  });
  const [first, second, third] = await place.look(["ls", "--oldest"]);
  expect(Number(second?.["expires_at"]) - Number(first?.["expires_at"])).toBeWithin(0, 5);
  expect(Number(second?.["next_attempt_at"]) - Number(first?.["next_attempt_at"])).toBeWithin(59.9, 65);
  expect(third).toMatchObject({ status: "expired", expires_at: null });
});

test("retry --rate spreads the due times", async () => {
  using place = new Place();
  for (let n = 0; n < 3; n++) await enqueue(place);
  await place.here(["cancel", "1", "2", "3"], { stdout: /./ });
  await place.here(["retry", "1", "2", "3", "--rate", "6/m", "--dry-run"], {
    stdout: /^3 messages would be put back, one after the other until /,
  });
  await place.here(["retry", "1", "2", "3", "--rate", "6/m"], { stdout: /^3 messages put back, one after the other until .* \(in \d/ });
  const due = (await place.look(["ls", "--oldest"])).map((row) => Number(row["next_attempt_at"]));
  expect((due[1] ?? 0) - (due[0] ?? 0)).toBeWithin(9.9, 15);
  expect((due[2] ?? 0) - (due[1] ?? 0)).toBeWithin(9.9, 15);
  await place.here(["retry", "1", "--rate", "5"], {
    code: 2,
    stderr: 'outbox: --rate "5" is no rate; write how many per s, m, h or d: 5/s\n',
  });
});

test("--dry-run says what would change and changes nothing", async () => {
  using place = new Place();
  await enqueue(place);
  await place.here(["cancel", "1", "--dry-run"], { stdout: "1 message would be cancelled\n" });
  expect(await place.look(["purge", "1", "--dry-run"])).toEqual([{ changed: 1, refused: 0 }]);
  expect(await status(place, "1")).toBe("pending");
});

test("purge deletes whatever the status, and an audit row stays", async () => {
  using place = new Place();
  await enqueue(place, "--dedup-key", "once");
  await place.run(["purge", "1"], { stdout: "1 message purged\n" });
  await place.run(["show", "1"], { code: 1, stderr: "outbox: there is no message 1\n" });
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--dedup-key", "once"], { stdout: ID });
  using db = new Database(place.database, { readonly: true });
  expect(db.query("SELECT action FROM admin_events").all()).toEqual([{ action: "dispatch.purge" }]);
});

test("purge refuses a message whose command runs, unless forced", async () => {
  using place = new Place();
  await enqueue(place);
  {
    using db = new Database(place.database, { readwrite: true });
    db.run(`UPDATE dispatch_outbox SET status = 'delivering', attempt = attempt + 1, next_attempt_at = unixepoch() + 600, lock_token = 'held', holder = 'h',
      updated_at = unixepoch(), reason_code = 'dispatch.delivering.attempt', source = 'scheduler', actor = 'test'`);
  }
  await place.here(["cancel", "1"], { code: 1, stdout: /^0 /, stderr: "outbox: cannot cancel 1: its command is running; wait for it\n" });
  await place.here(["purge", "1"], {
    code: 1,
    stdout: /^0 /,
    stderr: "outbox: cannot purge 1: its command is running; wait, or use --force\n",
  });
  await place.here(["purge", "1", "--force"], { stdout: "1 message purged\n" });
});

test("migrate --install adds the tables to a program's own database", async () => {
  using place = new Place();
  const path = join(place.home, "own.db");
  {
    using db = new Database(path);
    db.run("CREATE TABLE things (id INTEGER PRIMARY KEY)");
  }
  await place.run(["ls", "--db", path], { code: 74, stderr: /belongs to another program/ });
  await place.run(["migrate", "--install", "--db", path], { stdout: `${path} has schema ${SCHEMA_VERSION}\n` });
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--db", path], { stdout: ID });
  await place.run(["migrate", "--db", path], { stdout: `${path} has schema ${SCHEMA_VERSION}\n` });
});
