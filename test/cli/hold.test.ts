/** Holds: what they stop, for how long, and how they end. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { ID, Place } from "./outbox.ts";
import { sh, Workstation } from "./running.ts";

setDefaultTimeout(30_000);

const workstation = (): Workstation => new Workstation().settings({ dispatch: { notify_template: sh("exit 0") } });

test("what is held is not sent, what comes later neither, and resume lets all of it go", async () => {
  using place = workstation();
  await place.enqueue({}, { kind: "other" }, { deliver_to: "seat-2" });
  await place.run(["hold", "--to", "seat-1"], { stdout: "messages to seat-1 are held until resumed\n" });
  await place.enqueue({});
  expect(await place.drain()).toMatchObject({ attempted: 1, delivered: 1 });
  expect(place.rows().map(({ status, attempt }) => `${status} ${attempt}`)).toEqual(["pending 0", "pending 0", "delivered 1", "pending 0"]);
  await place.run(["resume", "--to", "seat-1"], { stdout: "1 hold ended\n" });
  expect(await place.drain()).toMatchObject({ attempted: 3, delivered: 3 });
});

test.each([
  [["--kind", "ping"], [2, 3], "messages of kind ping"],
  [["--ordering-key", "a"], [1, 3], "messages of ordering key a"],
  [["--kind", "ping", "--ordering-key", "a", "--to", "seat-1"], [1, 2, 3], "messages of kind ping of ordering key a to seat-1"],
  [["--all"], [], "all messages"],
])("hold %j lets %j through", async (flags, sent, what) => {
  using place = workstation();
  await place.enqueue({ ordering_key: "b", deliver_to: "seat-2" }, { kind: "other", ordering_key: "a" }, { kind: "more" });
  await place.here(["hold", ...flags], { stdout: `${what} are held until resumed\n` });
  await place.look(["run", "--once"]);
  expect(place.rows().flatMap(({ seq, status }) => (status === "delivered" ? [seq] : []))).toEqual(sent);
});

test("a held message expires all the same", async () => {
  using place = workstation();
  await place.enqueue({ expires_at: 4_000_000_000 });
  await place.here(["hold", "--all"], { stdout: /./ });
  place.sql("UPDATE dispatch_outbox SET expires_at = created_at, next_attempt_at = created_at");
  expect(await place.look(["run", "--once"])).toMatchObject([{ attempted: 1, expired: 1 }]);
});

test("hold --for ends by itself", async () => {
  using place = workstation();
  await place.enqueue({});
  await place.here(["hold", "--all", "--for", "1h"], { stdout: /^all messages are held until \d{4}-/ });
  expect(await place.look(["run", "--once"])).toMatchObject([{ attempted: 0 }]);
  place.sql("UPDATE dispatch_holds SET ends_at = created_at");
  await place.here(["hold"], { stderr: "outbox: nothing is held\n" });
  expect(await place.look(["run", "--once"])).toMatchObject([{ delivered: 1 }]);
});

test("hold alone lists what is held, escaped, and holding the same again changes it", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: ID });
  expect(await place.json(["hold"], { stderr: "outbox: nothing is held\n" })).toEqual([]);
  const [first] = await place.json(["hold", "--to", "a\u001b[2J", "--note", "x\ny"]);
  expect(Object.keys(first ?? {})).toEqual(["id", "deliver_to", "kind", "ordering_key", "note", "created_at", "ends_at", "actor"]);
  const [again] = await place.json(["hold", "--to", "a\u001b[2J", "--for", "1h"]);
  expect(again).toMatchObject({ id: 1, deliver_to: "a\u001b[2J", kind: null, note: "x\ny" });
  await place.run(["hold", "--kind", "k", "--ordering-key", "o"], { stdout: /./ });
  const table = await place.run(["hold"], { stdout: /^TO +KIND +ORDERING KEY +SINCE +ENDS +BY +NOTE\na\\x1b\[2J +any +any +/ });
  expect(table).toMatch(/x\\x0ay\nany +k +o +\S.* - +uid \d+$/);
  expect((await place.json(["hold"])).map(({ id }) => id)).toEqual([1, 2]);
});

test("resume ends exactly what it names, or all, and says with 1 that there was nothing", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: ID });
  await place.here(["hold", "--to", "a", "--kind", "k"], { stdout: /./ });
  await place.here(["hold", "--all"], { stdout: /./ });
  await place.here(["resume", "--to", "a"], {
    code: 1,
    stdout: "0 holds ended\n",
    stderr: "outbox: nothing to resume: there is no hold on exactly messages to a; outbox hold lists what is held\n",
  });
  expect(await place.json(["resume", "--kind", "k", "--to", "a"])).toEqual([{ changed: 1, refused: 0 }]);
  expect(await place.look(["resume", "--all"])).toEqual([{ changed: 1, refused: 0 }]);
  expect(await place.look(["resume", "--all"], { code: 1, stderr: "outbox: nothing to resume: nothing is held\n" })).toEqual([
    { changed: 0, refused: 0 },
  ]);
});

test("--dry-run says what would be held or ended, and changes nothing", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: ID });
  await place.here(["hold", "--kind", "k", "--dry-run"], { stdout: "messages of kind k would be held until resumed\n" });
  expect(await place.look(["hold", "--kind", "k", "--dry-run"])).toMatchObject([{ id: null, kind: "k" }]);
  await place.here(["resume", "--all", "--dry-run"], { code: 1, stdout: "0 holds would be ended\n", stderr: /nothing is held/ });
  await place.here(["hold", "--kind", "k"], { stdout: /./ });
  await place.here(["resume", "--kind", "k", "--dry-run"], { stdout: "1 hold would be ended\n" });
  expect(await place.look(["hold"])).toHaveLength(1);
});

test("hold and resume leave one audit row each", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d"], { stdout: ID });
  await place.here(["hold", "--to", "a", "--note", "why"], { stdout: /./ });
  await place.here(["resume", "--to", "a"], { stdout: /./ });
  await place.here(["resume", "--to", "a"], { code: 1, stdout: /./, stderr: /./ });
  using db = new Database(place.database, { readonly: true });
  const events = db.query<{ action: string; actor: string; details: string }, []>("SELECT action, actor, details FROM admin_events").all();
  expect(events.map(({ action }) => action)).toEqual(["dispatch.hold", "dispatch.resume"]);
  expect(events[0]?.actor).toMatch(/^uid \d+$/);
  expect(JSON.parse(events[0]?.details ?? "")).toMatchObject({ deliver_to: "a", kind: null, note: "why" });
});

test.each([
  [["hold", "--for", "1h"], "outbox: hold needs --to, --kind, --ordering-key or --all; see outbox hold --help\n"],
  [["hold", "--dry-run"], "outbox: hold needs --to, --kind, --ordering-key or --all; see outbox hold --help\n"],
  [["hold", "--all", "--for", "0"], "outbox: --for 0 would be over at once; give a longer time, or leave it out: until resumed\n"],
  [["resume"], "outbox: resume needs --to, --kind, --ordering-key or --all; see outbox resume --help\n"],
  [["hold", "--all", "--to", "a"], "outbox: --all and --to exclude each other; give one of them\n"],
  [["hold", "--to="], "outbox: --to is empty; write --to DEST, or leave it out\n"],
])("%j is refused", async (words, stderr) => {
  using place = new Place();
  // The least that each of the two can be told is asked of the program.
  await (words.length === 1 || words[1] === "--dry-run" ? place.run(words, { code: 2, stderr }) : place.here(words, { code: 2, stderr }));
});
