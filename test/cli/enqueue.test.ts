import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ID, Place } from "./outbox.ts";

const TO = ["--kind", "k", "--to", "d"];
const envelope = (row: Record<string, unknown> | undefined) => JSON.parse(String(row?.["payload"])) as Record<string, unknown>;
const settingsFile = (place: Place, text: string): string => {
  const file = join(place.home, "settings.yaml");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
};

test("prints the id, and nothing else, once the message is stored", async () => {
  using place = new Place();
  const id = await place.run(["enqueue", ...TO], { stdout: ID });
  const [row] = await place.look(["show", id]);
  expect(row).toMatchObject({ id, seq: 1, kind: "k", deliver_to: "d", status: "pending", attempt: 0, max_attempts: 8, ack_required: 0 });
  expect(envelope(row)).toMatchObject({ dispatch_id: id, kind: "k", deliver_to: "d", attempt: 0, body: {} });
});

test("makes its database private at the default place", async () => {
  using place = new Place();
  await place.run(["enqueue", ...TO], { stdout: ID });
  expect(statSync(place.database).mode & 0o777).toBe(0o600);
  expect(statSync(join(place.database, "..")).mode & 0o777).toBe(0o700);
});

test("keeps a body to the letter, from a flag, a file and stdin", async () => {
  using place = new Place();
  const body = '{"z":1.0,"a":1e3,"z":"\\u00e9 é"}';
  writeFileSync(join(place.home, "body.json"), `${body}\n`);
  const runs = [
    await place.here(["enqueue", ...TO, "--body", body], { stdout: ID }),
    await place.here(["enqueue", ...TO, "--body-file", "body.json"], { stdout: ID }),
    await place.run(["enqueue", ...TO, "--body-file=-"], { stdout: ID }, { stdin: ` ${body}\n` }),
  ];
  for (const id of runs) expect(String((await place.look(["show", id]))[0]?.["payload"])).toEndWith(`"body":${body}}`);
});

test("turns text into a body, from a flag, a file and stdin", async () => {
  using place = new Place();
  writeFileSync(join(place.home, "note.txt"), "two\nlines\n");
  for (const [flags, text, stdin] of [
    [["--text", "hello"], "hello", undefined],
    [["--text="], "", undefined],
    [["--text=-h"], "-h", undefined],
    [["--text-file", "note.txt"], "two\nlines\n", undefined],
    [["--text-file", "-"], 'from "stdin"', 'from "stdin"'],
  ] as const) {
    const id = await place.here(["enqueue", ...TO, ...flags], { stdout: ID }, stdin === undefined ? {} : { stdin });
    expect(envelope((await place.look(["show", id]))[0])["body"]).toEqual({ text });
  }
});

test("--json answers with everything a script needs", async () => {
  using place = new Place();
  const [answer] = await place.json(["enqueue", ...TO, "--ack", "--expires-at", "2999-01-01T00:00:00Z"]);
  expect(Object.keys(answer ?? {})).toEqual([
    "id",
    "seq",
    "outcome",
    "status",
    "attempt",
    "next_attempt_at",
    "expires_at",
    "ack_token",
    "differs",
  ]);
  expect(answer).toMatchObject({ seq: 1, outcome: "created", status: "pending", attempt: 0, expires_at: 32_472_144_000, differs: [] });
  expect(answer?.["ack_token"]).toMatch(/^[0-9a-f]{32}$/);
});

test("a known dedup key answers with the first id and changes nothing", async () => {
  using place = new Place();
  const id = await place.here(["enqueue", ...TO, "--dedup-key", "once", "--text", "a"], { stdout: ID });
  await place.here(["enqueue", ...TO, "--dedup-key", "once", "--text", "b"], { stdout: `${id}\n` });
  const [answer] = await place.look(["enqueue", ...TO, "--dedup-key", "once", "--text", "b", "--max-attempts", "3"]);
  expect(answer).toMatchObject({ id, outcome: "duplicate", differs: ["body", "max_attempts"] });
  expect(await place.look(["ls"])).toHaveLength(1);
});

test("warns when a duplicate has another kind, destination or acknowledgement", async () => {
  using place = new Place();
  const id = await place.here(["enqueue", ...TO, "--dedup-key", "once"], { stdout: ID });
  await place.run(["enqueue", "--kind", "other", "--to", "d", "--dedup-key", "once", "--ack"], {
    stdout: `${id}\n`,
    stderr: `outbox: dedup key "once" belongs to ${id}, which has another kind and ack_required; the first one stands\n`,
  });
});

test("--on-duplicate fail exits 1 without an id on stdout", async () => {
  using place = new Place();
  const args = ["enqueue", ...TO, "--dedup-key", "once", "--on-duplicate", "fail"];
  const id = await place.here(args, { stdout: ID });
  await place.run(args, { code: 1, stderr: new RegExp(`^outbox: the dedup key is taken by ${id} \\(pending\\); `) });
  await place.here([...args, "--json"], { code: 1, stderr: /taken/ });
});

test("--batch with --on-duplicate fail stores all, or names the line that is known and stores nothing", async () => {
  using place = new Place();
  const batch = (...keys: readonly string[]): string => `\n${keys.map((key) => `{"dedup_key":"${key}"}\n`).join("\n")}`;
  const args = ["enqueue", "--batch", "-", ...TO, "--on-duplicate", "fail"];
  const ids = (await place.here(args, { stdout: /^([0-9a-f]{32}\n){2}$/ }, { stdin: batch("a", "b") })).split("\n");
  await place.here(
    args,
    { code: 1, stderr: `outbox: batch line 4: the dedup key "b" is taken by ${ids[1]} (pending); nothing was stored; ${HINT}\n` },
    { stdin: batch("c", "b", "d") },
  );
  await place.here(
    [...args, "--json"],
    { code: 1, stderr: `outbox: batch line 6: the dedup key "e" is that of line 2; nothing was stored; ${HINT}\n` },
    { stdin: batch("e", "f", "e") },
  );
  expect(await place.look(["ls"])).toHaveLength(2);
});
const HINT = "leave --on-duplicate fail out to get the first id of a known key";

test.each(["--body", "--body-file"])("null as a %s is no body, as in a batch and in the library", async (flag) => {
  using place = new Place();
  await place.here(["enqueue", ...TO, flag, flag === "--body" ? " null " : "-"], { stdout: ID }, { stdin: "null\n" });
  const [row] = await place.look(["show", "1"]);
  expect(JSON.parse(String(row?.["payload"]))).toMatchObject({ body: {} });
});

test.each([
  [["enqueue"], "outbox: enqueue needs --kind; see outbox enqueue --help\n"],
  [["enqueue", "--kind", "k"], "outbox: enqueue needs --to; see outbox enqueue --help\n"],
  [["enqueue", ...TO, "--text", "-h"], 'outbox: --text needs a value, and "-h" looks like a flag; if it is the value, write --text=-h\n'],
  [["enqueue", ...TO, "--expires-in", "90"], 'outbox: --expires-in "90" is a number without a unit; write 90s, 90m, 90h or 90d\n'],
  [["enqueue", ...TO, "--expires-at", "tomorrow"], /^outbox: --expires-at "tomorrow" is not a time; /],
  [["enqueue", ...TO, "--not-before", "2h"], /^outbox: --not-before "2h" is a duration, not a time; /],
  [["enqueue", ...TO, "--not-before", "2026-03-29 02:30"], /does not exist in local time: the clock goes from \+01:00 to \+02:00/],
  [["enqueue", ...TO, "--not-before", "2026-10-25 02:30"], /exists twice in local time: the clock goes from \+02:00 to \+01:00/],
  [["enqueue", ...TO, "--max-attempts", "0"], 'outbox: --max-attempts "0" is not a whole number from 1 to 999999999; write digits only\n'],
  [["enqueue", ...TO, "--max-attempts", "1e3"], /is not a whole number/],
  [["enqueue", ...TO, "--on-duplicate", "replace"], 'outbox: --on-duplicate "replace" is unknown; write keep or fail\n'],
  [["enqueue", ...TO, "--expires-in", "1h", "--delay", "2h"], /^outbox: --expires-in ends it before --delay lets it begin; /],
  [["enqueue", ...TO, "--expires-at", "2030-01-01", "--not-before", "2030-01-01"], /^outbox: --expires-at ends it before --not-before /],
  [["run", "--json"], /^outbox: --json prints the counts of --once; /],
  [["enqueue", "--batch", "-", "--body-file", "-"], "outbox: stdin can be read only once; put the body or the batch into a file\n"],
])("a usage error stores nothing: %j", async (args, stderr) => {
  using place = new Place();
  await place.here(args, { code: 2, stderr });
  expect(existsSync(place.database)).toBeFalse();
});

test.each([
  [["--body", "[]"], /^outbox: the body is .*array.*, not an object; /],
  [["--body", "{"], /^outbox: the body is not JSON/],
  [["--body-file", "missing.json"], /^outbox: cannot read missing\.json: there is no such file; /],
  [["--body-file", "."], /^outbox: cannot read \.: it is a directory; /],
  [["--text", "caf\ufffd"], /^outbox: --text holds bytes that are not UTF-8/],
  [["--dedup-key", "k\ufffd"], /^outbox: --dedup-key holds bytes that are not UTF-8/],
])("bad data exits 65 and stores nothing: %j", async (flags, stderr) => {
  using place = new Place();
  await place.here(["enqueue", ...TO, ...flags], { code: 65, stderr });
  expect(existsSync(place.database)).toBeFalse();
});

test("invalid UTF-8 is refused in argv, stdin and files alike", async () => {
  using place = new Place();
  const argv = await place.sh(`outbox enqueue --kind k --to "$(printf 'a\\377')"`);
  expect(argv).toMatchObject({ code: 65, stdout: "" });
  await place.run(
    ["enqueue", ...TO, "--text-file", "-"],
    { code: 65, stderr: /^outbox: stdin is not valid UTF-8; / },
    { stdin: new Uint8Array([0x61, 0xff]) },
  );
});

test("a body over the limit is refused before it is read whole", async () => {
  using place = new Place();
  const stdin = `{"a":"${"x".repeat(1_048_576)}"}`;
  await place.run(["enqueue", ...TO, "--body-file", "-"], { code: 65, stderr: /^outbox: stdin holds more than 1048576 bytes/ }, { stdin });
});

test("an expiry that has passed is accepted with a warning", async () => {
  using place = new Place();
  await place.here(["enqueue", ...TO, "--expires-at", "2020-01-01"], { stdout: ID, stderr: /^outbox: the expiry has passed already/ });
});

test("--retry-for becomes as many attempts as the backoff needs", async () => {
  using place = new Place();
  const id = await place.here(["enqueue", ...TO, "--retry-for", "3d"], { stdout: ID });
  expect((await place.look(["show", id]))[0]).toMatchObject({ max_attempts: 149 });
});

test("the attempts of a kind's route hold unless a flag says otherwise", async () => {
  using place = new Place();
  const config = settingsFile(place, "dispatch:\n  max_attempts: 5\n  routes:\n    fast: { notify_template: [a], max_attempts: 2 }\n");
  for (const [kind, flags, attempts] of [
    ["fast", [], 2],
    ["k", [], 5],
    ["fast", ["--max-attempts", "7"], 7],
  ] as const) {
    const id = await place.here(["enqueue", "--config", config, "--kind", kind, "--to", "d", ...flags], { stdout: ID });
    expect((await place.look(["show", id]))[0]).toMatchObject({ max_attempts: attempts });
  }
});

test("warns when the message cannot fit into an argument of the known template", async () => {
  using place = new Place();
  const config = settingsFile(place, 'dispatch:\n  notify_template: [notify, "{deliver_to}", "{payload}"]\n');
  const stdin = "x".repeat(131_072);
  await place.here(
    ["enqueue", "--config", config, ...TO, "--text-file", "-"],
    { stdout: ID, stderr: /longer than \{payload\} may be in an argument \(131071 bytes\)/ },
    { stdin },
  );
  await place.here(["enqueue", "--config", config, ...TO, "--text-file", "-"], { stdout: ID }, { stdin: stdin.slice(0, 130_000) });
});

test("a broken settings file stops it, unless the database is named without it", async () => {
  using place = new Place();
  const config = settingsFile(place, "dispatch:\n  max_atempts: 5\n");
  await place.run(["enqueue", "--config", config, ...TO], { code: 78, stderr: /max_atempts/ });
  expect(existsSync(place.database)).toBeFalse();
  const told = /^outbox: .*max_atempts.*; using the built-in bounds\n$/;
  await place.here(["enqueue", "--config", config, "--db", "a.db", ...TO], { stdout: ID, stderr: told });
  await place.run(["enqueue", "--config", config, ...TO], { stdout: ID, stderr: told }, { env: { OUTBOX_DB: "b.db" } });
});

test("a settings file that others could change always stops it", async () => {
  using place = new Place();
  const config = settingsFile(place, "dispatch:\n  max_attempts: 5\n");
  chmodSync(config, 0o666);
  await place.here(["enqueue", "--config", config, "--db", "a.db", ...TO], { code: 77, stderr: /chmod/ });
  expect(existsSync(join(place.home, "a.db"))).toBeFalse();
});

test("--db wins over OUTBOX_DB, which wins over the settings; --source picks one of them", async () => {
  using place = new Place();
  const config = settingsFile(place, "database: ./own.db\nsources:\n  shop: ./shop.db\n");
  const env = { OUTBOX_CONFIG: config };
  await place.run(["enqueue", ...TO], { stdout: ID }, { env });
  await place.run(["enqueue", ...TO, "--source", "shop"], { stdout: ID }, { env: { ...env, OUTBOX_DB: "variable.db" } });
  await place.run(["enqueue", ...TO], { stdout: ID }, { env: { ...env, OUTBOX_DB: "variable.db" } });
  await place.run(["--db=flag.db", "enqueue", ...TO], { stdout: ID }, { env: { ...env, OUTBOX_DB: "variable.db" } });
  for (const name of ["own.db", "shop.db", "variable.db", "flag.db"]) expect(await place.look(["ls", "--db", name])).toHaveLength(1);
  await place.run(
    ["enqueue", ...TO, "--source", "shp"],
    { code: 2, stderr: 'outbox: unknown source "shp"; did you mean shop?\n' },
    { env },
  );
});

test("a missing directory elsewhere is not made", async () => {
  using place = new Place();
  await place.here(["enqueue", ...TO, "--db", "unmounted/a.db"], { code: 74, stderr: /there is no directory/ });
  mkdirSync(join(place.home, "unmounted"));
  await place.here(["enqueue", ...TO, "--db", "unmounted/a.db"], { stdout: ID });
});

test("--batch stores its lines in order, the flags being their defaults", async () => {
  using place = new Place();
  const stdin =
    '{"kind":"a","deliver_to":"x","body":{"n":1.0}}\n\n{"deliver_to":"y","dedup_key":"once"}\r\n{"deliver_to":"y","dedup_key":"once","max_attempts":3}';
  const ids = (
    await place.run(
      ["enqueue", "--batch", "-", "--kind", "k", "--to", "d", "--max-attempts", "4"],
      { stdout: /^([0-9a-f]{32}\n){3}$/ },
      { stdin },
    )
  ).split("\n");
  expect(ids[1]).toBe(String(ids[2]));
  const rows = await place.look(["ls", "--oldest"]);
  expect(rows.map((row) => [row["id"], row["kind"], row["deliver_to"], row["max_attempts"]])).toEqual([
    [ids[0], "a", "x", 4],
    [ids[1], "k", "y", 4],
  ]);
  expect(String((await place.look(["show", ids[0] ?? ""]))[0]?.["payload"])).toEndWith('"body":{"n":1.0}}');
});

test.each([
  ['{"kind":"a","deliver_to":"x"}\n{"kind":"a"}\n', /^outbox: batch line 2: deliver_to is missing; nothing was stored\n$/],
  ["{}\n", /^outbox: batch line 1: kind is missing; nothing was stored\n$/],
  ["[]\n", /^outbox: batch line 1: it is .*array.*, not an object; nothing was stored; /],
  ['{"kind":"a","deliver_to":"x","tpyo":1}\n', /^outbox: batch line 1: "tpyo" is no field/],
  ['{"kind":"a","kind":"b","deliver_to":"x"}\n', /^outbox: batch line 1: it names a field twice; nothing was stored; /],
  ['\n\n{"kind":"a","deliver_to":"x","body":[]}\n', /^outbox: batch line 3: the body is/],
  [new Uint8Array([0x7b, 0xff, 0x7d]), /^outbox: batch line 1: the line is not valid UTF-8; nothing was stored; /],
])("a bad batch line is named and nothing is stored: %j", async (stdin, stderr) => {
  using place = new Place();
  await place.here(["enqueue", "--batch", "-"], { code: 65, stderr }, { stdin });
  expect(existsSync(place.database)).toBeFalse();
});

test("an id that cannot be written is exit 74, and stderr tells it", async () => {
  using place = new Place();
  const full = await place.sh("outbox enqueue --kind k --to d > /dev/full");
  expect(full).toMatchObject({ code: 74, stdout: "" });
  expect(full.stderr).toMatch(/^outbox: cannot write to stdout: no space left on the device; the message is stored as [0-9a-f]{32}\n$/);
  const closed = await place.sh("(sleep 0.1; outbox enqueue --kind k --to d; echo $? >&2) | true");
  expect(closed.stderr).toMatch(/^outbox: stdout is closed; the message is stored as [0-9a-f]{32}\n74\n$/);
  expect(await place.look(["ls"])).toHaveLength(2);
});

test("closed streams change nothing else", async () => {
  using place = new Place();
  expect(await place.sh("outbox enqueue --kind k --to d <&- 2>&-")).toMatchObject({ code: 0, stdout: expect.stringMatching(ID) });
  expect(await place.sh("outbox enqueue --kind k --to d --nonsense 2>&-")).toEqual({ code: 2, stdout: "", stderr: "" });
  expect(await place.sh("outbox enqueue --kind k --to d --nonsense 2>/dev/full")).toEqual({ code: 2, stdout: "", stderr: "" });
});

test("revive enters one heartbeat for each seat and epoch", async () => {
  using place = new Place();
  const args = ["revive", "seat-1", "seat-2", "--reset-epoch", "32472144000.0", "--ttl", "30m"];
  const stdout = `${await place.run(args, { stdout: /^([0-9a-f]{32}\n){2}$/ })}\n`;
  await place.here(args.with(4, "32472144000"), { stdout });
  const rows = await place.look(["ls", "--oldest"]);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toMatchObject({
    kind: "revival_ping",
    deliver_to: "seat-1",
    dedup_key: "revival:seat-1:32472144000",
    expires_at: 32_472_145_800,
  });
  const [whole] = await place.look(["show", "1"]);
  expect(envelope(whole)["body"]).toEqual({ reset_epoch: 32_472_144_000 });
});

test("revive with epoch 0 never expires, and one long past is told once", async () => {
  using place = new Place();
  await place.here(["revive", "a", "--reset-epoch", "0"], { stdout: ID });
  expect((await place.look(["ls"]))[0]).toMatchObject({ expires_at: null, dedup_key: "revival:a:0" });
  await place.here(["revive", "a", "b", "--reset-epoch", "1"], { stdout: /./, stderr: /^outbox: the expiry has passed already[^\n]*\n$/ });
  await place.run(["revive", "a"], { code: 2, stderr: "outbox: revive needs --reset-epoch; see outbox revive --help\n" });
  await place.here(["revive", "a", "--reset-epoch", "soon"], { code: 2, stderr: /is no time in epoch seconds/ });
});

test("a settings file that is named and missing stops it although the database is named", async () => {
  using place = new Place();
  await place.here(["enqueue", "--kind", "k", "--to", "t", "--config", "nowhere.yaml", "--db", "o.db"], {
    code: 78,
    stderr: /^outbox: --config names a settings file that does not exist: .*nowhere\.yaml; /,
  });
});

test("an ordering key comes from the flag, from a batch line, and for lines that lack one from the flag", async () => {
  using place = new Place();
  await place.here(["enqueue", ...TO, "--ordering-key", "a"], { stdout: ID });
  const stdin = '{"kind":"k","deliver_to":"d","ordering_key":"b"}\n{"kind":"k","deliver_to":"d"}\n';
  await place.here(["enqueue", "--batch", "-", "--ordering-key", "c"], { stdout: /./ }, { stdin });
  expect((await place.look(["ls", "--oldest"])).map(({ ordering_key: key }) => key)).toEqual(["a", "b", "c"]);
  await place.here(["enqueue", ...TO, "--ordering-key="], { code: 2, stderr: /^outbox: --ordering-key is empty; / });
  await place.here(["enqueue", ...TO, "--ordering-key", "k".repeat(1_025)], {
    code: 65,
    stderr: /^outbox: ordering_key has 1025 bytes; the limit is 1024\n$/,
  });
});

test("a duplicate with another ordering key is warned of", async () => {
  using place = new Place();
  const once = ["enqueue", ...TO, "--dedup-key", "once"];
  const id = await place.here([...once, "--ordering-key", "a"], { stdout: ID });
  await place.here([...once, "--ordering-key", "b"], {
    stdout: `${id}\n`,
    stderr: `outbox: dedup key "once" belongs to ${id}, which has another ordering_key; the first one stands\n`,
  });
  await place.here(once, { stdout: `${id}\n` });
});
