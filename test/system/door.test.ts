/** The SQL door from other languages, with SQLite libraries older than ours: python3 and the sqlite3 shell. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { checkRequest, DEFAULT_LIMITS } from "../../src/core/request.ts";
import { breaches } from "../../src/store/invariants.ts";
import { openDatabase } from "../../src/store/open.ts";
import { ID } from "../cli/outbox.ts";
import { sh, until, Workstation } from "../cli/running.ts";
import { type DoorRow, MODES } from "../fixtures/store/door.ts";
import { BODIES, REFUSED } from "../fixtures/store/door_cases.ts";
import { terms } from "../fixtures/store/terms.ts";
import { count, row, scratch } from "../fixtures/world.ts";

setDefaultTimeout(60_000);

const DOOR = join(import.meta.dir, "../fixtures/system/door.py");

function python(code: string, ...args: readonly string[]): string {
  const { stdout, stderr } = Bun.spawnSync(["python3", "-c", `import json, sqlite3, sys\n${code}`, ...args]);
  expect(stderr.toString()).toBe("");
  return stdout.toString();
}

/** What Python's library says to each row. */
function answers(path: string, rows: readonly (readonly [mode: string, row: DoorRow])[]): (string | null)[] {
  const plain = (_: string, value: unknown): unknown =>
    value instanceof Uint8Array
      ? { hex: value.toHex() }
      : value === Infinity
        ? { real: "inf" }
        : value === -Infinity
          ? { real: "-inf" }
          : value;
  const stdin = rows.map((each) => `${JSON.stringify(each, plain)}\n`).join("");
  const { stdout, stderr } = Bun.spawnSync(["python3", DOOR, path], { stdin: Buffer.from(stdin) });
  expect(stderr.toString()).toBe("");
  return stdout
    .toString()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as string | null);
}

test("an older library refuses the same by the same names, in every conflict mode", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const db = await openDatabase(terms(path));
  const least = { kind: "ping", deliver_to: "seat-1" };
  const rows = MODES.flatMap((mode) => REFUSED.map(([given]) => [mode, { ...least, ...given }] as const));
  const wanted = MODES.flatMap(() => REFUSED.map(([, said]) => `dispatch: ${said}`));
  expect(answers(path, rows)).toEqual(wanted);
  expect([count(db, "dispatch_outbox"), count(db, "status_transitions")]).toEqual([0, 0]);
  db.close();
});

test("an older library takes and refuses the same bodies, and makes the same envelope", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const db = await openDatabase(terms(path));
  const kind = 'k"\\\u0001\u001f\u007f\n\u2028é😀/';
  const said = answers(
    path,
    BODIES.map((body) => ["", { kind, deliver_to: "d", body }] as const),
  );
  const taken = BODIES.map((body) => {
    try {
      return checkRequest({ kind, deliver_to: "d" }, DEFAULT_LIMITS, body).body;
    } catch {
      return null;
    }
  });
  expect(said.map((each) => each === null)).toEqual(taken.map((each) => each !== null));
  const stored = taken.filter((each) => each !== null);
  expect(count(db, "dispatch_outbox")).toBe(stored.length);
  for (const [at, body] of stored.entries()) {
    const { payload, id, created_at } = row(db, at + 1);
    expect(payload).toEndWith(
      `,"dispatch_id":"${id}","kind":${JSON.stringify(kind)},"deliver_to":"d","attempt":0,"ack_token":null,"body":${body}}`,
    );
    expect(payload).toContain(`,"created_at":${created_at},`);
  }
  expect(breaches(db, Date.now() / 1_000 + 1)).toEqual([]);
  db.close();
});

test("Python: a message commits and rolls back with the change that it announces, once for a key, and a runner delivers it", async () => {
  using place = new Workstation();
  place.settings({ dispatch: { notify_template: sh('cat >> "$HOME/log"; echo >> "$HOME/log"') } });
  const path = place.file("shop.db");
  python('sqlite3.connect(sys.argv[1]).execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER)")', path);
  await place.run(["migrate", "--install", "--db", path], { stdout: /./ });
  const seen = python(
    `db = sqlite3.connect(sys.argv[1], timeout=30)
def pay(order, mode=""):
    db.execute("INSERT INTO orders VALUES (?, 1)", (order,))
    db.execute(f"INSERT {mode} INTO dispatch_enqueue (kind, deliver_to, body, dedup_key, user_id) VALUES ('paid', 'billing', ?, ?, 'u-1')",
        (json.dumps({"order": order}), f"paid:{order // 10}"))
with db: pay(1)
try:
    with db: pay(20); raise ValueError
except ValueError: pass
with db: pay(2, "OR IGNORE")  # the key of 1
try:
    with db: pay(3); db.execute("INSERT OR IGNORE INTO dispatch_enqueue (kind, deliver_to) VALUES ('', 'x')")
except sqlite3.IntegrityError as error: print(error)
print(db.execute("SELECT count(*) FROM orders").fetchone(), db.execute("SELECT body, user_id FROM dispatch_enqueue WHERE dedup_key = 'paid:0'").fetchall())`,
    path,
  );
  expect(seen).toBe(`dispatch: kind is empty\n(2,) [('{"order": 1}', 'u-1')]\n`);
  expect(JSON.parse(await place.run(["run", "--once", "--json", "--db", path], { stdout: /./ }))).toMatchObject({
    attempted: 1,
    delivered: 1,
  });
  expect(place.lines("log").map((line) => (JSON.parse(line) as { body: unknown }).body)).toEqual([{ order: 1 }]);
});

test("Python wakes an idle runner", async () => {
  using place = new Workstation();
  place.settings({ dispatch: { notify_template: sh("true") }, run: { interval: "1h" } });
  await place.run(["enqueue", "--kind", "ping", "--to", "seat-1"], { stdout: ID });
  const runner = place.background("run");
  await until(() => place.row(1).status === "delivered");
  python(
    `db = sqlite3.connect(sys.argv[1], timeout=30)
with db: db.execute("INSERT INTO dispatch_enqueue (kind, deliver_to) VALUES ('ping', 'python')")`,
    place.database,
  );
  await until(() => place.rows()[1]?.status === "delivered");
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});

test("the sqlite3 shell: within BEGIN and COMMIT, and after a ROLLBACK nothing", async () => {
  using place = new Workstation();
  await place.run(["enqueue", "--kind", "ping", "--to", "seat-1"], { stdout: ID });
  const { exitCode, stderr } = Bun.spawnSync(["sqlite3", "-bail", place.database], {
    stdin: Buffer.from(`.timeout 30000
BEGIN; INSERT INTO dispatch_enqueue (kind, deliver_to, body) VALUES ('gone', 'd', '{"a": 1}'); ROLLBACK;
BEGIN; INSERT INTO dispatch_enqueue (kind, deliver_to, body, expires_at) VALUES ('kept', 'd', '{"a": "ü"}', 4e9); COMMIT;
INSERT OR IGNORE INTO dispatch_enqueue (kind, deliver_to, body) VALUES ('wrong', 'd', '{a: 1}');
`),
  });
  expect(stderr.toString()).toContain("dispatch: body is not JSON");
  expect(exitCode).not.toBe(0);
  expect(place.rows().map(({ kind }) => kind)).toEqual(["ping", "kept"]);
});
