/** The origin of a message, through the built program: where it is taken from, who is told, and that a command hands it on. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { BINARY, ID } from "./outbox.ts";
import { Workstation } from "./running.ts";

const TO = ["enqueue", "--kind", "k", "--to", "d"];
const FLAGS = ["--tenant-id", "acme", "--user-id", "u-1", "--user-roles", "reader,writer", "--correlation-id", "c-1"];
const FROM_FLAGS = { tenant_id: "acme", user_id: "u-1", user_roles: "reader,writer", correlation_id: "c-1" };
const ENV = { OUTBOX_TENANT_ID: "env-t", OUTBOX_USER_ID: "env-u", OUTBOX_USER_ROLES: "env-r", OUTBOX_CORRELATION_ID: "env-c" };
const FROM_ENV = { tenant_id: "env-t", user_id: "env-u", user_roles: "env-r", correlation_id: "env-c" };
const NONE = { tenant_id: null, user_id: null, user_roles: null, correlation_id: null };

test("a flag beats the environment, and an empty variable is none", async () => {
  using place = new Workstation();
  await place.run([...TO, ...FLAGS], { stdout: ID }, { env: ENV });
  await place.run([...TO, "--user-id", "u-1"], { stdout: ID }, { env: ENV });
  await place.run(TO, { stdout: ID }, { env: { OUTBOX_TENANT_ID: "", OUTBOX_USER_ROLES: "" } });
  await place.run(["revive", "seat-1", "--reset-epoch", "0"], { stdout: ID }, { env: ENV });
  const wanted = [FROM_FLAGS, { ...FROM_ENV, user_id: "u-1" }, NONE, FROM_ENV];
  expect(place.rows()).toMatchObject(wanted);
  expect(await place.json(["ls", "--oldest"])).toMatchObject(wanted);
});

test("in a batch the line beats the flag, and the flag the environment", async () => {
  using place = new Workstation();
  const stdin = '{"kind":"k","deliver_to":"d","tenant_id":"line","user_id":null}\n{"kind":"k","deliver_to":"d"}\n';
  await place.run(["enqueue", "--batch", "-", "--tenant-id", "flag", "--user-id", "flag"], { stdout: /./ }, { stdin, env: ENV });
  expect(place.rows()).toMatchObject([
    { ...FROM_ENV, tenant_id: "line", user_id: "flag" },
    { ...FROM_ENV, tenant_id: "flag", user_id: "flag" },
  ]);
});

test("show tells it to a person and to a script", async () => {
  using place = new Workstation();
  const id = await place.run([...TO, ...FLAGS], { stdout: ID });
  expect(await place.json(["show", id])).toMatchObject([FROM_FLAGS]);
  const portrait = await place.run(["show", id], { stdout: /./ });
  for (const line of ["tenant       acme", "user         u-1", "roles        reader,writer", "correlation  c-1"])
    expect(portrait).toContain(`\n  ${line}\n`);
});

test("a duplicate is told that its origin differs, and warned of nothing", async () => {
  using place = new Workstation();
  await place.run([...TO, "--dedup-key", "x", ...FLAGS], { stdout: ID });
  const [answer] = await place.json([...TO, "--dedup-key", "x", "--tenant-id", "other"], {}, { env: { OUTBOX_USER_ROLES: "reader" } });
  expect(answer).toMatchObject({ outcome: "duplicate", differs: ["tenant_id", "user_roles"] });
});

test("roles are cut at a comma; what cannot be kept is refused by the name under which it came", async () => {
  using place = new Workstation();
  await place.run([...TO, "--user-roles", `reader,${"x".repeat(510)}`], { stdout: ID });
  expect(place.row(1).user_roles).toBe("reader");
  const long = "x".repeat(65);
  const hint = "; unset it, or give it another value\n";
  for (const [args, env, stderr] of [
    [["--tenant-id", long], {}, "outbox: tenant_id has 65 characters; the limit is 64\n"],
    [[], { OUTBOX_USER_ID: long }, `outbox: OUTBOX_USER_ID has 65 characters; the limit is 64${hint}`],
    [[], { OUTBOX_USER_ROLES: "x".repeat(513) }, `outbox: OUTBOX_USER_ROLES begins with a role of more than 512 characters${hint}`],
    [
      [],
      { OUTBOX_CORRELATION_ID: "a\ufffd" },
      `outbox: OUTBOX_CORRELATION_ID holds bytes that are not UTF-8, or U+FFFD, which stands for them${hint}`,
    ],
    [
      ["--correlation-id", "a\ufffd"],
      {},
      "outbox: --correlation-id holds bytes that are not UTF-8, or U+FFFD, which stands for them; convert it, or use a file or --batch\n",
    ],
  ] as const)
    await place.run([...TO, ...args], { code: 65, stderr }, { env });
  await place.run(
    ["revive", "s", "--reset-epoch", "0"],
    { code: 65, stderr: /^outbox: OUTBOX_TENANT_ID / },
    { env: { OUTBOX_TENANT_ID: long } },
  );
  await place.run(
    ["enqueue", "--batch", "-"],
    { code: 65, stderr: /^outbox: batch line 1: user_id has 65 characters; the limit is 64; nothing was stored\n$/ },
    { stdin: `{"kind":"k","deliver_to":"d","user_id":"${long}"}` },
  );
  // A variable that nobody asks for harms nobody.
  await place.run([...TO, ...FLAGS], { stdout: ID }, { env: { OUTBOX_TENANT_ID: long } });
  expect(place.rows()).toHaveLength(2);
});

test("a command that enqueues hands its origin on, and one without an origin none, whatever its runner has", async () => {
  using place = new Workstation();
  const path = `${join(BINARY, "..")}:/usr/bin:/bin`;
  place.settings({
    dispatch: {
      env: { PATH: path },
      routes: {
        first: {
          notify_template: [
            "sh",
            "-c",
            'echo "$0" >> "$HOME/log"; outbox enqueue --kind second --to "$OUTBOX_DELIVER_TO"',
            "{correlation_id}",
          ],
        },
        second: { notify_template: ["sh", "-c", 'env | grep -E "^OUTBOX_(TENANT|USER|CORRELATION)" | sort >> "$HOME/log" || true'] },
      },
    },
  });
  await place.run(["enqueue", "--kind", "first", "--to", "with", ...FLAGS], { stdout: ID });
  await place.run(["enqueue", "--kind", "first", "--to", "without"], { stdout: ID });
  await place.run(["run", "--once"], {}, { env: ENV });
  await place.run(["run", "--once"], {}, { env: ENV });
  const second = place.rows().filter(({ kind }) => kind === "second");
  expect(second.map(({ status }) => status)).toEqual(["delivered", "delivered"]);
  expect(second.find(({ deliver_to }) => deliver_to === "with")).toMatchObject(FROM_FLAGS);
  expect(second.find(({ deliver_to }) => deliver_to === "without")).toMatchObject(NONE);
  expect(place.lines("log").toSorted()).toEqual([
    "OUTBOX_CORRELATION_ID=c-1",
    "OUTBOX_TENANT_ID=acme",
    "OUTBOX_USER_ID=u-1",
    "OUTBOX_USER_ROLES=reader,writer",
    "c-1",
  ]);
});
