/** Stepping in by filter, through the built program: what is named, what is told, and what happens beside a runner. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { breaches } from "../../src/store/invariants.ts";
import { sh, until, Workstation } from "./running.ts";

setDefaultTimeout(60_000);

const audits = (place: Workstation): unknown[] =>
  place.sql<{ action: string; details: string }>("SELECT action, details FROM admin_events ORDER BY id").map(({ action, details }) => {
    const { changed, refused } = JSON.parse(details) as { changed?: number; refused?: number };
    return [action, changed, refused];
  });

async function soundAfter(place: Workstation): Promise<void> {
  using db = new Database(place.database, { readwrite: true, create: false, strict: true });
  expect(breaches(db, Date.now() / 1_000)).toEqual([]);
}

describe("what is named", () => {
  test.concurrent("is said: an ID, a filter or --all, and one of them", async () => {
    using place = new Workstation();
    await place.enqueue({}, { kind: "other" });
    for (const verb of ["retry", "cancel", "purge"]) {
      await place.run([verb], { code: 2, stderr: `outbox: ${verb} needs an ID, a filter or --all; see outbox ${verb} --help\n` });
      await place.here([verb, "--dry-run"], { code: 2, stderr: /needs an ID, a filter or --all/ });
      await place.here([verb, "1", "--kind", "ping"], {
        code: 2,
        stderr: `outbox: ${verb} takes IDs or a filter, not both; leave one of them out\n`,
      });
      await place.here([verb, "1", "--all"], { code: 2, stderr: `outbox: ${verb} takes IDs or --all, not both; leave one of them out\n` });
      await place.here([verb, "--all", "--since", "1h"], {
        code: 2,
        stderr: "outbox: --all and a filter exclude each other; give one of them\n",
      });
    }
    await place.here(["retry", "--status", "pending"], {
      code: 2,
      stderr: "outbox: --status pending: only dead or expired messages can be retried; the statuses are dead_letter and expired\n",
    });
    await place.here(["cancel", "--status", "acked"], {
      code: 2,
      stderr: "outbox: --status acked: only messages that wait can be cancelled; the statuses are pending and delivering\n",
    });
    expect(place.rows().map(({ status }) => status)).toEqual(["pending", "pending"]);
    expect(audits(place)).toEqual([]);
  });

  test.concurrent("is changed, counted, and audited once; a dry run says the same before", async () => {
    using place = new Workstation();
    await place.enqueue({ kind: "a" }, { kind: "b" }, { kind: "a", deliver_to: "seat-2" }, { kind: "a" });
    const cancel = ["cancel", "--kind", "a", "--to", "seat-1"];
    await place.run([...cancel, "--dry-run"], { stdout: "2 messages would be cancelled\n" });
    expect(await place.json([...cancel, "--dry-run"])).toEqual([{ changed: 2, refused: 0 }]);
    expect(audits(place)).toEqual([]);
    await place.run(cancel, { stdout: "2 messages cancelled\n" });
    await place.run(cancel, { stdout: "0 messages cancelled\n" });
    expect(place.rows().map(({ status }) => status)).toEqual(["expired", "pending", "pending", "expired"]);
    expect(await place.json(["retry", "--all"])).toEqual([{ changed: 2, refused: 0 }]);
    expect(await place.json(["purge", "--all"])).toEqual([{ changed: 0, refused: 0 }]);
    await place.run(["purge", "--status", "pending", "--kind", "b"], { stdout: "1 message purged\n" });
    expect(audits(place)).toEqual([
      ["dispatch.cancel", 2, 0],
      ["dispatch.retry", 2, 0],
      ["dispatch.purge", 1, 0],
    ]);
  });

  test.concurrent("a database that is not there is not made", async () => {
    using place = new Workstation();
    await place.run(["cancel", "--all"], { code: 1, stderr: /^outbox: no database at / });
  });
});

describe("what was refused", () => {
  test.concurrent("is told by reason, exit 1", async () => {
    using place = new Workstation();
    await place.enqueue({}, {}, { expires_at: 4_000_000_000 });
    await place.here(["cancel", "--all"], { stdout: /./ });
    place.sql("UPDATE dispatch_outbox SET expires_at = created_at WHERE seq < 3");
    await place.run(["retry", "--all", "--dry-run"], {
      code: 1,
      stdout: "1 message would be put back\n",
      stderr: "outbox: 2 messages would not be put back: their expiry has passed; give a new one with --expires-in\n",
    });
    await place.here(["retry", "--all", "--rate", "1/m", "--expires-in", "90s"], {
      code: 1,
      stdout: /^2 messages put back, one after the other until .* \(in (\d+s|1m)\)\n$/,
      stderr:
        "outbox: 1 message was not put back: it would expire before it is due; give a later expiry with --expires-in, or a faster --rate\n",
    });
    place.sql(`UPDATE dispatch_outbox SET status = 'delivering', attempt = 1, next_attempt_at = unixepoch() + 600, lock_token = 'x', holder = 'h',
      updated_at = unixepoch(), reason_code = 'dispatch.delivering.attempt', source = 'scheduler', actor = 'test' WHERE seq = 1`);
    await place.here(["cancel", "--all"], {
      code: 1,
      stdout: "1 message cancelled\n",
      stderr: "outbox: 1 message was not cancelled: its command is running; wait for it\n",
    });
    await place.here(["purge", "--status", "delivering"], {
      code: 1,
      stdout: "0 messages purged\n",
      stderr: "outbox: 1 message was not purged: its command is running; wait, or use --force\n",
    });
    await place.here(["purge", "--status", "delivering", "--force"], { stdout: "1 message purged\n" });
    await soundAfter(place);
  });
});

describe("retry --rate", () => {
  test.concurrent("spreads also what IDs name the oldest first, and says until when, as a dry run did", async () => {
    using place = new Workstation();
    await place.enqueue({}, {}, {});
    await place.here(["cancel", "--all"], { stdout: /./ });
    const ids = [String(place.row(3).seq), place.row(1).id, "2"];
    const until = /^3 messages would be put back, one after the other until 20\d\d-.* \(in (1\d(\.\d+)?|20)s\)\n$/;
    await place.here(["retry", ...ids, "--rate", "6/m", "--dry-run"], { stdout: until });
    await place.here(["retry", "--all", "--rate", "6/m", "--dry-run"], { stdout: until });
    await place.here(["retry", ...ids, "--rate", "6/m"], { stdout: /^3 messages put back, one after the other until 20.*\n$/ });
    const due = place.rows().map(({ next_attempt_at }) => next_attempt_at);
    expect(due).toEqual(due.toSorted((one, other) => one - other));
    expect((due[2] ?? 0) - (due[0] ?? 0)).toBeWithin(19.9, 30);
  });

  test.concurrent("clears the error of IDs and keeps that of a filter", async () => {
    using place = new Workstation().settings({ dispatch: { notify_template: sh("echo broken >&2; exit 1") } });
    await place.enqueue({ max_attempts: 1 }, { max_attempts: 1 });
    await place.run(["run", "--once"], { stderr: /died/ });
    await place.here(["retry", "1"], { stdout: /./ });
    await place.here(["retry", "--reason", "max_attempts"], { stdout: "1 message put back\n" });
    expect(place.rows().map(({ last_error, attempt, status }) => [last_error, attempt, status])).toEqual([
      [null, 0, "pending"],
      ["broken", 0, "pending"],
    ]);
  });
});

describe("a signal", () => {
  test.concurrent.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s ends it between two steps, also while it waits for a lock", async (signal, code) => {
    using place = new Workstation();
    await place.enqueue({});
    using db = new Database(place.database, { readwrite: true, create: false });
    db.run("BEGIN IMMEDIATE");
    const cancel = place.background("cancel", "--all");
    // Its handlers are there once it has opened the database.
    await until(() => Bun.spawnSync(["grep", "-q", "outbox.db", `/proc/${cancel.pid}/maps`]).exitCode === 0);
    cancel.kill(signal);
    expect(await cancel.exited).toBe(code);
    db.run("ROLLBACK");
    expect(cancel.said()).toBe("outbox: interrupted, not all was looked at; the same command goes on with the rest\n");
    expect(place.row(1).status).toBe("pending");
  });
});

test.concurrent("killed in the middle, it leaves an audit entry that counts what it had done, and the same command goes on", async () => {
  using place = new Workstation();
  await place.enqueue(...Array.from({ length: 3_000 }, () => ({})));
  const cancel = place.background("cancel", "--all");
  await until(() => audits(place).length > 0 || cancel.hasExited());
  cancel.kill("SIGKILL");
  await cancel.exited;
  const done = place.rows().filter(({ status }) => status === "expired").length;
  expect(audits(place)).toEqual([["dispatch.cancel", done, 0]]);
  expect(await place.json(["cancel", "--all"])).toEqual([{ changed: 3_000 - done, refused: 0 }]);
  await soundAfter(place);
});

describe("beside a runner at work", () => {
  test("nothing is lost, doubled or out of order, the audit counts what was done, and every cache is right", async () => {
    using place = new Workstation().settings({
      dispatch: { notify_template: sh("echo $1 >> sent; exit 0"), concurrency: 4, circuit: { failures: 0 } },
    });
    const requests = Array.from({ length: 300 }, (_, n) => ({
      kind: n % 3 === 0 ? "cancelled" : "sent",
      deliver_to: `seat-${n % 7}`,
      ordering_key: n % 2 === 0 ? `key-${n % 10}` : null,
    }));
    await place.enqueue(...requests);
    await place.here(["cancel", "--kind", "sent"], { stdout: "200 messages cancelled\n" });
    const runner = place.background("run");
    await until(() => place.lines("sent").length > 3);
    const [retried] = await place.json(["retry", "--all"]);
    // Some of them run just now: those are refused.
    const cancel = await place.start(["cancel", "--kind", "cancelled", "--json"]);
    const cancelled = JSON.parse(cancel.stdout) as { changed: number; refused: number };
    expect(cancel.code).toBe(cancelled.refused > 0 ? 1 : 0);
    expect(retried).toEqual({ changed: 200, refused: 0 });
    await until(() => place.sql("SELECT 1 FROM dispatch_outbox WHERE status IN ('pending', 'delivering')").length === 0);
    const [purged] = await place.json(["purge", "--status", "delivered"]);
    runner.kill("SIGTERM");
    expect(await runner.exited).toBe(0);
    const sent = place.lines("sent");
    expect(new Set(sent).size).toBe(sent.length);
    expect(purged).toEqual({ changed: sent.length, refused: 0 });
    expect(sent.length + cancelled.changed).toBe(300);
    await soundAfter(place);
  });
});
