/** Looking: ls, show, stats. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ID, Place } from "./outbox.ts";
import { sh, Workstation } from "./running.ts";

async function filled(place: Place, count: number): Promise<void> {
  const stdin = Array.from({ length: count }, (_, at) => `{"kind":"k${at % 2}","deliver_to":"d${at % 3}"}\n`).join("");
  await place.here(["enqueue", "--batch", "-"], { stdout: /./ }, { stdin });
}
const seqs = (rows: readonly Record<string, unknown>[]) => rows.map((row) => row["seq"]);

test.each([
  [["ls"]],
  [["show", "1"]],
  [["stats"]],
  [["cancel", "1"]],
  [["retry", "1"]],
  [["purge", "1"]],
  [["ack", "1", "t"]],
  [["migrate"]],
  [["hold"]],
  [["hold", "--all"]],
  [["resume", "--all"]],
])("%j says that there is no database, and makes none", async (args) => {
  using place = new Place();
  await place.here(args, { code: 1, stderr: /^outbox: no database at .*outbox\.db; / });
  expect(existsSync(place.database)).toBeFalse();
});

test("ls prints a table, newest first", async () => {
  using place = new Place();
  await filled(place, 3);
  const lines = (await place.run(["ls"], { stdout: /./ })).split("\n");
  expect(lines[0]).toMatch(/^SEQ {2}STATUS {3}KIND {2}TO {2}ATTEMPT {2}NEXT +AGE$/);
  expect(lines.slice(1).map((line) => line.trim().split(/ +/)[0])).toEqual(["3", "2", "1"]);
});

test("ls --json has no payload and no token", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--ack"], { stdout: ID });
  const [row] = await place.json(["ls"]);
  for (const secret of ["payload", "ack_token", "lock_token"]) expect(row).not.toHaveProperty(secret);
  expect(row).toMatchObject({ seq: 1, ack_required: 1, metadata: {} });
});

test("ls filters, limits and turns pages", async () => {
  using place = new Place();
  await filled(place, 12);
  expect(seqs(await place.look(["ls", "--kind", "k0", "--to", "d0", "--to", "d1"]))).toEqual([11, 7, 5, 1]);
  expect(seqs(await place.look(["ls", "--limit", "2"]))).toEqual([12, 11]);
  expect(seqs(await place.look(["ls", "--limit", "2", "--after", "11"]))).toEqual([10, 9]);
  expect(seqs(await place.look(["ls", "--limit", "2", "--after", "11", "--oldest"]))).toEqual([12]);
  const [first] = await place.look(["ls", "--limit", "1"]);
  expect(seqs(await place.look(["ls", "--limit", "1", "--after", String(first?.["id"])]))).toEqual([11]);
  expect(seqs(await place.look(["ls", "--reason", "enqueued", "--limit", "1"]))).toEqual([12]);
  expect(seqs(await place.look(["ls", "--since", "1h", "--limit", "1"]))).toEqual([12]);
});

test("an empty list is a sentence on stderr and nothing on stdout", async () => {
  using place = new Place();
  await filled(place, 1);
  await place.run(["ls", "--kind", "nope"], { stderr: "outbox: no message matches\n" });
  expect(await place.look(["ls", "--before", "1h"], { stderr: "outbox: no message matches\n" })).toEqual([]);
});

test.each([
  [["--status", "dead"], 'outbox: --status "dead" is no status; did you mean dead_letter?\n'],
  [["--limit", "-1"], 'outbox: --limit needs a value, and "-1" looks like a flag; if it is the value, write --limit=-1\n'],
  [["--after", "x"], 'outbox: --after "x" is no ID; write the number or the 32 hex digits that ls prints\n'],
  [["--since", "25:00"], /^outbox: --since "25:00" is no time that a clock shows; /],
])("ls refuses %j", async (flags, stderr) => {
  using place = new Place();
  await place.here(["ls", ...flags], { code: 2, stderr });
});

test("a filter whose bytes were replaced on their way is refused, exit 65", async () => {
  using place = new Place();
  const said = "holds bytes that are not UTF-8, or U+FFFD, which stands for them; convert it, or name messages by their numbers";
  await place.here(["ls", "--to", "a\ufffd"], { code: 65, stderr: `outbox: --to ${said}\n` });
  await place.here(["purge", "--kind", "k", "--dedup-key", "\ufffd"], { code: 65, stderr: `outbox: --dedup-key ${said}\n` });
});

test("3,000 rows arrive whole through a slow pipe, and as in a file", async () => {
  using place = new Place();
  await filled(place, 3_000);
  const { code, stdout, stderr } = await place.sh(
    "outbox ls --limit 0 --json > b; outbox ls --limit 0 --json | (sleep 0.2; cat) > a; cmp a b && wc -l < a",
  );
  expect({ code, lines: stdout.trim(), stderr }).toEqual({ code: 0, lines: "3000", stderr: "" });
});

test("a reader that has seen enough ends a list quietly", async () => {
  using place = new Place();
  await filled(place, 3_000);
  const { stdout, stderr } = await place.sh("(outbox ls --limit 0 --json; echo $? >&2) | head -1 | cut -c1-6");
  expect({ stdout, stderr }).toEqual({ stdout: '{"seq"\n', stderr: "0\n" });
});

test("a full disk is told, exit 74", async () => {
  using place = new Place();
  await filled(place, 1);
  expect(await place.sh("outbox ls > /dev/full")).toEqual({
    code: 74,
    stdout: "",
    stderr: "outbox: cannot write to stdout: no space left on the device\n",
  });
});

test("control characters of stored text are escaped everywhere", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k\u001b[2J", "--to", "a\nb\u202e\u009b", "--text", "\u001b]0;x\u0007"], { stdout: ID });
  for (const args of [["ls"], ["ls", "--json"], ["show", "1"], ["show", "1", "--json"]]) {
    expect(await place.here(args, { stdout: /./ })).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
  expect((await place.look(["ls"]))[0]).toMatchObject({ kind: "k\u001b[2J", deliver_to: "a\nb\u202e\u009b" });
});

test("show prints row, envelope and history; several, and says which is missing", async () => {
  using place = new Place();
  const id = await place.here(["enqueue", "--kind", "k", "--to", "d", "--text", "hello", "--dedup-key", "once"], { stdout: ID });
  const text = await place.run(["show", "1"], { stdout: /./ });
  expect(text).toStartWith(`1  ${id}  pending\n  kind         k\n  to           d\n`);
  for (const part of ["\nEnvelope\n", '\n      "text": "hello"\n', "\nHistory\n", "enqueued kind=k"]) expect(text).toContain(part);
  const rows = await place.json(["show", "99", id, "nonsense"], {
    code: 1,
    stderr: "outbox: there is no message 99\noutbox: there is no message nonsense\n",
  });
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ id, history: [{ previous_status: null, status: "pending", evidence_refs: [] }], audit: [] });
});

test("stats counts by status", async () => {
  using place = new Place();
  await filled(place, 3);
  await place.run(["cancel", "1"], { stdout: "1 message cancelled\n" });
  const [figures] = await place.json(["stats"]);
  expect(figures).toMatchObject({ depth: 2, status: { pending: 2, expired: 1, delivered: 0 } });
  const keys = ["depth", "oldest_due_age", "status", "open_circuits", "holds", "circuits", "source", "path"];
  const added = ["dead_letters", "lag", "attempts", "dead_letters_total"];
  expect(Object.keys(figures ?? {}).toSorted()).toEqual([...keys, ...added].toSorted());
  await place.run(["stats"], { stdout: /^depth +2\noldest due +\S+\npending +2\n/ });
});

test("stats tells of every database of the settings, and with 74 of one that cannot be read", async () => {
  using place = new Workstation().settings({ sources: { shop: "shop.db", gone: "gone.db" } });
  const shop = join(place.settingsFile, "../shop.db");
  await filled(place, 3);
  await place.here(["enqueue", "--kind", "k", "--to", "d", "--source", "shop"], { stdout: ID });
  const left = { code: 74, stderr: /^outbox: source gone is left out: no database at .*gone\.db; / };
  const all = await place.look(["stats"], left);
  expect(all.map(({ source, depth }) => [source, depth])).toEqual([
    ["default", 3],
    ["shop", 1],
  ]);
  expect(all[1]?.["path"]).toBe(shop);
  await place.here(["stats"], { ...left, stdout: /^SOURCE +default +shop\ndepth +3 +1\n/ });
  expect((await place.look(["stats", "--source", "shop"])).map(({ source }) => source)).toEqual(["shop"]);
  await place.here(["stats", "--source", "gone"], { code: 1, stderr: /^outbox: no database at / });
});

test("stats, ls and show tell of an open circuit", async () => {
  using place = new Workstation().settings({
    dispatch: { notify_template: sh("echo broken >&2; exit 1"), circuit: { failures: 1, cooldown: "1h" }, backoff: { base: 0 } },
  });
  await place.enqueue({}, { kind: "later" });
  await place.start(["run", "--once"]);
  expect((await place.look(["stats"]))[0]).toMatchObject({ open_circuits: 1, circuits: [{ deliver_to: "seat-1" }] });
  await place.here(["stats"], {
    stdout: /\nopen circuits +1\nholds +0\ncircuit open for \S+: seat-1 failed \d+ times? in a row, tries again in \S+\n$/,
  });
  for (const words of [["ls"], ["show", "1"]]) expect(await place.here(words, { stdout: /./ })).toMatch(/circuit open for \S+m/);
});

test("ls and show tell of order, and of holds with their note", async () => {
  using place = new Place();
  const step = ["enqueue", "--kind", "k", "--to", "d"];
  await place.here([...step, "--ordering-key", "job-7"], { stdout: ID });
  await place.here([...step, "--ordering-key", "job-7"], { stdout: ID });
  await place.here([...step], { stdout: ID });
  const table = await place.here(["ls", "--oldest"], { stdout: /^SEQ {2}STATUS {3}KIND {2}TO {2}KEY / });
  expect(table).toMatch(/\n +2 {2}pending +k +d +job-7 +0\/8 +waits for 1 of its key +\S+\n/);
  expect(seqs(await place.look(["ls", "--ordering-key", "job-7"]))).toEqual([2, 1]);
  expect((await place.look(["ls"])).map(({ waits_for }) => waits_for)).toEqual([null, 1, null]);
  expect(await place.here(["ls", "--limit", "1"], { stdout: /./ })).not.toContain("KEY");
  await place.here(["hold", "--to", "d", "--note", "broken\u001b[2J", "--for", "1h"], { stdout: /./ });
  expect(await place.here(["show", "3"], { stdout: /./ })).toMatch(
    /\n {2}next +held\n {2}held +since .*, until .*, by uid \d+: broken\\x1b\[2J\n/,
  );
  expect((await place.look(["show", "2"]))[0]).toMatchObject({ ordering_key: "job-7", waits_for: 1, held_by: 1, open_until: null });
});

test("an absurdly long ID is answered in one readable line", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "t"], { stdout: ID });
  for (const command of ["show", "retry", "purge"]) {
    await place.here([command, "a".repeat(100_000)], { code: 1, stdout: /^/, stderr: /^[^]{0,1999}$/ });
  }
});

test("an error of many lines is its first line in a list, and an attempt whose runner vanished is one in show", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: sh("kill -9 $PPID; sleep 5") } });
  await place.enqueue({ max_attempts: 2 });
  await place.start(["run", "--once"]);
  place.ageLeases();
  const long = "x".repeat(2_500);
  place.settings({ dispatch: { notify_template: sh(`(echo ${long}; echo more) >&2; exit 1`) } });
  await place.start(["run", "--once"]);
  const shown = await place.here(["show", "1"], { stdout: /./ });
  expect(shown).toMatch(/^ {2}attempt 1: its runner vanished, \d{4}-.*$/m);
  expect(shown).toMatch(/^ {2}attempt 2: exit 1 after /m);
  const lines = (await place.here(["ls"], { stdout: /./ })).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(300);
  expect(lines[1]).toContain(" …");
});

test("every list fits a terminal of 60 columns", async () => {
  using place = new Workstation().settings({ dispatch: { notify_template: sh("exit 1") } });
  const long = { kind: "k".repeat(40), deliver_to: "d".repeat(40), ordering_key: "o".repeat(40), max_attempts: 1 };
  await place.enqueue(long, { ...long, ordering_key: "p" });
  await place.start(["run", "--once"]);
  await place.here(["retry", "1"], { stdout: /./ });
  await place.here(["hold", "--to", long.deliver_to, "--kind", long.kind, "--note", "n".repeat(60), "--for", "2d"], { stdout: /./ });
  const printed = await place.sh(
    `script -qec 'stty cols 60; export TERM=dumb; outbox ls; outbox hold; outbox config show; outbox show 1 | cat; outbox show 1' /dev/null`,
  );
  const tables = printed.stdout.replaceAll("\r", "").split("\n");
  const history = tables.slice(tables.lastIndexOf("History"));
  const lists = tables.slice(
    0,
    tables.findIndex((line) => line.startsWith("1  ")),
  );
  expect([...lists, ...history].filter((line) => Bun.stringWidth(line) > 60)).toEqual([]);
  expect([lists.length > 20, history.length > 5]).toEqual([true, true]);
});
