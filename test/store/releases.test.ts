/** Files that a released outbox wrote. Every later one must open them, bring them forward and go on where they stopped. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { moveAfter } from "../../src/core/lifecycle.ts";
import { figures } from "../../src/store/figures.ts";
import { breaches } from "../../src/store/invariants.ts";
import { bringForward, install, MIGRATIONS } from "../../src/store/migrate.ts";
import { ownership } from "../../src/store/ownership.ts";
import { openDatabase } from "../../src/store/open.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { settle } from "../../src/store/transitions.ts";
import { terms as openTerms } from "../fixtures/store/terms.ts";
import { enter, POLICY, row, scratch, T0, take } from "../fixtures/world.ts";

const RELEASES = join(import.meta.dir, "..", "fixtures", "releases");
/** Later than every time in the files of before. */
const LATER = 1_795_990_000;

function rows(db: Database): unknown[] {
  return db
    .query(
      "SELECT seq, id, kind, deliver_to, ordering_key, payload, status, attempt, next_attempt_at, lock_token, updated_at FROM dispatch_outbox ORDER BY seq",
    )
    .all();
}

describe.each(readdirSync(RELEASES))("the file of release %s", (release) => {
  async function forward(dir: { file(name: string): string }): Promise<Database> {
    copyFileSync(join(RELEASES, release, "outbox.db"), dir.file("outbox.db"));
    return openDatabase(openTerms(dir.file("outbox.db"), { older: "bring forward" }));
  }

  test("is brought forward with every row as it was, and with caches that hold", async () => {
    using dir = scratch();
    copyFileSync(join(RELEASES, release, "outbox.db"), dir.file("old.db"));
    const old = new Database(dir.file("old.db"), { readwrite: true, strict: true });
    const before = [rows(old), old.query("SELECT * FROM status_transitions").all(), old.query("SELECT * FROM admin_events").all()];
    old.close();
    const db = await forward(dir);
    expect(ownership(db)).toEqual({ whose: "ours", version: SCHEMA_VERSION });
    expect([rows(db), db.query("SELECT * FROM status_transitions").all(), db.query("SELECT * FROM admin_events").all()]).toEqual(before);
    expect(breaches(db, LATER)).toEqual([]);
    db.close();
  });
});

describe("the file of release 0.1.0", () => {
  test("is copied before it is changed", async () => {
    using dir = scratch();
    copyFileSync(join(RELEASES, "0.1.0", "outbox.db"), dir.file("outbox.db"));
    (await openDatabase(openTerms(dir.file("outbox.db"), { older: "bring forward" }))).close();
    expect(existsSync(`${dir.file("outbox.db")}.schema-1.backup`)).toBe(true);
  });

  test("has a claim in flight, which its token settles; then its key goes on in order", async () => {
    using dir = scratch();
    copyFileSync(join(RELEASES, "0.1.0", "outbox.db"), dir.file("outbox.db"));
    const db = await openDatabase(openTerms(dir.file("outbox.db"), { older: "bring forward" }));
    const claim = row(db, 8);
    expect(claim).toMatchObject({ status: "delivering", ordering_key: "a", holder: "desk 4572 461707" });
    const report = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
    const move = moveAfter({ kind: "ok", report }, claim, POLICY, claim.updated_at + 1, 0);
    const held = { seq: 8, attempt: 1, lockToken: claim.lock_token ?? "" };
    const due: Pick<Dispatch, "seq">[] = [];
    for (let got = take(db, claim.updated_at); got !== null; got = take(db, claim.updated_at)) due.push(got);
    expect(due.map((one) => one.seq)).toEqual([10]); // the first of key b; key a has a claim in flight
    expect(settle(db, held, move, claim.updated_at + 1, "h")).toBe("applied");
    expect(take(db, claim.updated_at + 1)?.seq).toBe(9);
    expect(breaches(db, LATER)).toEqual([]);
    db.close();
  });
});

test("what stands in a table of schema 1, keyed or not, waiting, claimed or finished, gets the caches and counters of later ones", () => {
  const db = new Database(":memory:", { strict: true });
  install(db, MIGRATIONS.slice(0, 1));
  for (let n = 1; n <= 60; n++)
    db.run(
      `INSERT INTO dispatch_outbox (id, kind, deliver_to, ordering_key, payload, next_attempt_at, created_at, updated_at)
       VALUES (printf('%032x', ${n}), 'k', 'seat-${n % 5}', ${n % 3 === 0 ? "NULL" : `'key-${n % 7}'`}, '{}', ${n * 10}, 1, 1)`,
    );
  db.run("UPDATE dispatch_outbox SET status = 'expired', reason_code = 'dispatch.expired.cancelled', updated_at = 2 WHERE seq % 4 = 0");
  db.run(
    "UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 'a', next_attempt_at = seq * 5, updated_at = 2 WHERE seq % 4 = 1",
  );
  bringForward(db);
  expect(breaches(db, 150)).toEqual([]);
  expect(figures(db, 150)).toMatchObject({
    status: { pending: 30, delivering: 15, delivered: 0, acked: 0, dead_letter: 0, expired: 15 },
    lag: { count: 0 }, // how late they were is not known
  });
  expect(db.query("SELECT count(*) AS n FROM dispatch_outbox WHERE ready = 0 AND status IN ('pending', 'delivering')").get()).toEqual({
    n: 23,
  });
});

test.each([1, 2])("the history in a table of schema %d fills the counters of what ever happened", (version) => {
  const db = new Database(":memory:", { strict: true });
  install(db, MIGRATIONS.slice(0, version));
  for (let n = 1; n <= 120; n++) {
    enter(db, { kind: `kind-${n}` });
    db.query(CLAIM).run(`desk ${n} 1`, n);
    // The last ones were ended by another than their runner.
    db.query(
      "UPDATE dispatch_outbox SET status = 'dead_letter', reason_code = 'dispatch.dead_letter.max_attempts', lock_token = NULL, holder = NULL, actor = ? WHERE seq = ?",
    ).run(n > 90 ? "desk 999 1" : `desk ${n} 1`, n);
  }
  db.run(
    "UPDATE dispatch_outbox SET status = 'pending', reason_code = 'dispatch.pending.operator_retry', attempt = 0, actor = 'anna' WHERE seq = 1",
  );
  bringForward(db);
  const { attempts, dead_letters, dead_letters_total: died, status } = figures(db, T0);
  expect(attempts.slice(0, 2)).toEqual([
    { kind: "", result: "lost", count: 20 },
    { kind: "kind-1", result: "max_attempts", count: 1 },
  ]);
  expect(attempts.filter(({ result }) => result === "lost")).toHaveLength(11);
  expect([attempts.length, died.length]).toEqual([101, 101]);
  expect([dead_letters, status.dead_letter, status.pending]).toEqual([{ max_attempts: 119 }, 119, 1]);
  expect(breaches(db, LATER)).toEqual([]);
});

const CLAIM =
  "UPDATE dispatch_outbox SET status = 'delivering', reason_code = 'dispatch.delivering.attempt', attempt = 1, lock_token = 't', holder = ?1, actor = ?1 WHERE seq = ?2";
