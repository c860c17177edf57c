/** `enqueue --now`: entered, claimed and sent by one process, and never by two. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { ID } from "./outbox.ts";
import { aliveIn, sh, until, Workstation } from "./running.ts";

setDefaultTimeout(60_000);

const NOW = ["enqueue", "--kind", "ping", "--to", "seat-1", "--now"];
const place = (script: string, more: Readonly<Record<string, unknown>> = {}): Workstation =>
  new Workstation().settings({ dispatch: { notify_template: sh(script), ...more } });

test("prints the id alone and has sent it when it returns", async () => {
  using station = place('cat > "$HOME/envelope"; echo "$OUTBOX_ATTEMPT $OUTBOX_DB $OUTBOX_ID" > "$HOME/env"; echo out; echo err >&2');
  const id = await station.run([...NOW, "--text", "hello"], { stdout: ID });
  expect(station.row(1)).toMatchObject({ id, status: "delivered", attempt: 1 });
  expect(station.lines("env")).toEqual([`1 ${station.database} ${id}`]);
  expect(station.lines("envelope")).toEqual([station.row(1).payload]);
  // Its output is kept, as that of a runner's command.
  expect(JSON.parse(station.row(1).metadata)).toMatchObject({ exit: 0, head: expect.stringMatching(/out[^]*err|err[^]*out/) });
  expect(station.history().map(({ reason_code }) => reason_code)).toEqual([
    "dispatch.pending.enqueued",
    "dispatch.delivering.attempt",
    "dispatch.delivered.transport_ok",
  ]);
});

test("--json answers before the command runs: leased, attempt 1", async () => {
  using station = place('sed -n 1p "$HOME/answer" > "$HOME/seen"');
  const { code } = await station.sh(`outbox ${NOW.join(" ")} --json > answer`);
  expect(code).toBe(0);
  expect(JSON.parse(station.lines("seen")[0] ?? "")).toMatchObject({ outcome: "created", status: "delivering", attempt: 1 });
  expect(station.row(1)).toMatchObject({ status: "delivered" });
});

test.each([
  [
    "a failed attempt",
    "echo nobody >&2; exit 1",
    [],
    "pending",
    /^outbox: 1 ping to seat-1 attempt 1 of 8 failed; again in \S+: nobody\n$/,
  ],
  [
    "a dead letter",
    "exit 1",
    ["--max-attempts", "1"],
    "dead_letter",
    /^outbox: 1 ping to seat-1 died \(max_attempts\): exit 1; see outbox show 1\n$/,
  ],
])("%s is told and changes no exit code", async (_, script, flags, status, stderr) => {
  using station = place(script);
  await station.here([...NOW, ...flags], { stdout: ID, stderr });
  expect(station.row(1)).toMatchObject({ status, attempt: 1 });
});

describe("stays pending, told why, where something is in its way:", () => {
  test.each<[string, readonly string[], readonly string[], RegExp]>([
    [
      "a known key",
      ["--dedup-key", "a"],
      ["--dedup-key", "a"],
      /^outbox: not sent now: the first message of its dedup key stands, and is pending\n$/,
    ],
    [
      "an earlier one of its key",
      ["--ordering-key", "a"],
      ["--ordering-key", "a"],
      /an earlier message of its ordering key is under way\n$/,
    ],
    ["a later time", [], ["--delay", "1h"], /^outbox: not sent now, it stays pending: it is not due yet\n$/],
    ["an expiry that has passed", [], ["--expires-at", "2020-01-01"], /it stays pending: its expiry has passed\n$/],
  ])("%s", async (_, first, second, stderr) => {
    using station = place("exit 0");
    await station.here([...NOW.slice(0, -1), ...first], { stdout: ID });
    await station.here([...NOW, ...second], { stdout: ID, stderr });
    expect(station.rows().every(({ status, attempt }) => status === "pending" && attempt === 0)).toBeTrue();
  });

  test("a hold", async () => {
    using station = place("exit 0");
    await station.enqueue({});
    await station.here(["hold", "--to", "seat-1"], { stdout: /./ });
    await station.run(NOW, { stdout: ID, stderr: "outbox: not sent now, it stays pending: it is held (outbox hold lists what is held)\n" });
    expect(station.row(2)).toMatchObject({ status: "pending", attempt: 0 });
  });

  test("an open circuit, which its own failure can open too", async () => {
    using station = place("exit 1", { circuit: { failures: 1, cooldown: "1h" } });
    await station.run(NOW, { stdout: ID, stderr: /attempt 1 of 8 failed.*\noutbox: seat-1 keeps failing: its circuit is open, / });
    await station.here(NOW, { stdout: ID, stderr: /it stays pending: its destination keeps failing, so its circuit is open\n$/ });
    expect(station.row(2)).toMatchObject({ status: "pending", attempt: 0 });
  });

  test("a full destination", async () => {
    using station = place('echo x >> "$HOME/began"; sleep 60', { per_destination: 1 });
    const first = station.background(...NOW);
    await until(() => station.lines("began").length === 1);
    await station.run(NOW, {
      stdout: ID,
      stderr: /as many messages to its destination are being sent as dispatch\.per_destination allows\n$/,
    });
    first.kill("SIGINT");
    first.kill("SIGTERM");
    await first.exited;
  });

  test.each([
    ["no template", {}, /it stays pending: no dispatch\.notify_template configured\n$/],
    ["a command that is missing", { notify_template: ["no-such-command-anywhere"] }, /no command "no-such-command-anywhere" in PATH/],
    ["no route", { routes: { other: { notify_template: ["true"] } } }, /nothing says how to send its kind\n$/],
  ])("%s", async (_, dispatch, stderr) => {
    using station = new Workstation().settings({ dispatch });
    await station.here(NOW, { stdout: ID, stderr });
    expect(station.row(1)).toMatchObject({ status: "pending", attempt: 0 });
  });
});

test("a duplicate with --on-duplicate fail is exit 1 and nothing runs", async () => {
  using station = place("exit 0");
  await station.here([...NOW, "--dedup-key", "a"], { stdout: ID });
  await station.here([...NOW, "--dedup-key", "a", "--on-duplicate", "fail"], { code: 1, stderr: /^outbox: the dedup key is taken by / });
  expect(station.history()).toHaveLength(3);
});

test("--now and --batch exclude each other", async () => {
  using station = place("exit 0");
  await station.run(["enqueue", "--batch", "-", "--now"], {
    code: 2,
    stderr: /--now and --batch exclude each other|--batch and --now exclude each other/,
  });
});

test("an id that cannot be written is exit 74, and the message is sent all the same", async () => {
  using station = place("exit 0");
  const { code, stderr } = await station.sh(`outbox ${NOW.join(" ")} > /dev/full`);
  expect({ code, stderr }).toMatchObject({ code: 74, stderr: expect.stringContaining("the message is stored as ") });
  expect(station.row(1)).toMatchObject({ status: "delivered" });
});

describe("a signal", () => {
  test("lets the command finish: exit 0, settled", async () => {
    using station = place('echo x >> "$HOME/began"; sleep 0.5; exit 0');
    const child = station.background(...NOW);
    await until(() => station.lines("began").length === 1);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    expect(station.row(1)).toMatchObject({ status: "delivered" });
  });

  test("ends the group when the grace is over, as a failed attempt", async () => {
    using station = new Workstation().settings({
      dispatch: { notify_template: sh('echo $$ >> "$HOME/began"; sleep 60') },
      run: { shutdown_grace: "100ms" },
    });
    const child = station.background(...NOW);
    await until(() => station.lines("began").length === 1);
    child.kill("SIGINT");
    expect(await child.exited).toBe(0);
    expect(station.row(1)).toMatchObject({ status: "pending", attempt: 1, reason_code: "dispatch.pending.retry_backoff" });
    expect(aliveIn(Number(station.lines("began")[0]))).toEqual([]);
  });

  test("a second one does not wait: 130 or 143, settled", async () => {
    using station = place('echo $$ >> "$HOME/began"; sleep 60');
    const child = station.background(...NOW);
    await until(() => station.lines("began").length === 1);
    // Two of one kind could arrive as one.
    child.kill("SIGINT");
    child.kill("SIGTERM");
    expect([130, 143]).toContain((await child.exited) ?? 0);
    expect(station.row(1)).toMatchObject({ status: "pending", attempt: 1 });
  });
});

test("the lease of a command that runs is renewed", async () => {
  using station = new Workstation().settings({
    dispatch: { notify_template: sh('echo x > "$HOME/began"; until [ -e "$HOME/go" ]; do sleep 0.2; done'), timeout: "7s" },
  });
  const child = station.background(...NOW);
  await until(() => station.lines("began").length === 1);
  const first = station.row(1).next_attempt_at;
  // 12 s, renewed after 4.
  await until(() => station.row(1).next_attempt_at > first + 3);
  writeFileSync(station.file("go"), "");
  expect(await child.exited).toBe(0);
  expect(station.row(1)).toMatchObject({ status: "delivered", attempt: 1 });
});

test("killed with its command running, it leaves the message to a runner once the lease is over", async () => {
  using station = place('echo "$2" >> "$HOME/began"; [ "$2" = 2 ] || sleep 60');
  const child = station.background(...NOW);
  await until(() => station.lines("began").length === 1);
  child.kill("SIGKILL");
  await child.exited;
  station.ageLeases();
  expect(await station.drain()).toMatchObject({ attempted: 1, delivered: 1 });
  expect(station.lines("began")).toEqual(["1", "2"]);
});

test("beside a live runner each message is sent once, by one of them", async () => {
  using station = place('echo "$1" >> "$HOME/sent"; exit 0', { per_destination: 3 });
  await station.enqueue({});
  const runner = station.background("run");
  await until(() => station.lines("sent").length === 1);
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 5 }, () => station.start(NOW)));
  await until(() => station.rows().every(({ status }) => status === "delivered"));
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  const sent = station.lines("sent");
  expect(sent).toHaveLength(51);
  expect(new Set(sent).size).toBe(51);
  expect(station.rows().every(({ attempt }) => attempt === 1)).toBeTrue();
});
