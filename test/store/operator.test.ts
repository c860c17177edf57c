import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Status } from "../../src/core/lifecycle.ts";
import { cancel, type OperatorOutcome, purge, retry } from "../../src/store/operator.ts";
import { audit } from "../../src/store/queries.ts";
import { ack } from "../../src/store/transitions.ts";
import { count, enter, memory, row, T0, take } from "../fixtures/world.ts";

const NOW = T0 + 100;
const BY = { now: NOW, actor: "anna" };
const NOBODY = { id: "0".repeat(32) };

/** A row in the given situation. `live`: its lease runs beyond NOW. */
const MAKE: Readonly<Record<Exclude<Status, "delivering"> | "live" | "stale", (db: Database) => void>> = {
  pending: (db) => void enter(db),
  live: (db) => {
    enter(db);
    take(db, NOW - 1);
  },
  stale: (db) => {
    enter(db);
    take(db, T0);
  },
  delivered: (db) => {
    enter(db);
    take(db, T0);
    db.run(
      "UPDATE dispatch_outbox SET status = 'delivered', reason_code = 'dispatch.delivered.transport_ok', lock_token = NULL, holder = NULL",
    );
  },
  acked: (db) => {
    const { id, ack_token } = enter(db, { ack_required: true });
    ack(db, { id }, ack_token ?? "", T0);
  },
  dead_letter: (db) => {
    enter(db, { max_attempts: 1 });
    take(db, T0);
    take(db, T0 + 15);
  },
  expired: (db) => {
    enter(db);
    cancel(db, { seq: 1 }, { now: T0, actor: "somebody" });
    db.run("DELETE FROM admin_events");
  },
};
const SITUATIONS = Object.keys(MAKE) as (keyof typeof MAKE)[];

function everything(db: Database): unknown {
  return ["dispatch_outbox", "status_transitions", "admin_events"].map((table) => db.query(`SELECT * FROM ${table}`).all());
}

interface Deed {
  readonly name: string;
  readonly perform: (db: Database, dryRun?: boolean) => OperatorOutcome;
  readonly answers: Readonly<Record<keyof typeof MAKE, OperatorOutcome["outcome"]>>;
}
const no = "wrong_status";
const yes = "changed";
const DEEDS: readonly Deed[] = [
  {
    name: "retry",
    perform: (db, dryRun) => retry(db, { seq: 1 }, { ...BY, dryRun: dryRun === true }),
    answers: { pending: no, live: no, stale: no, delivered: no, acked: no, dead_letter: yes, expired: yes },
  },
  {
    name: "cancel",
    perform: (db, dryRun) => cancel(db, { seq: 1 }, { ...BY, dryRun: dryRun === true }),
    answers: { pending: yes, live: "live", stale: yes, delivered: no, acked: no, dead_letter: no, expired: no },
  },
  {
    name: "purge",
    perform: (db, dryRun) => purge(db, { seq: 1 }, { ...BY, dryRun: dryRun === true }),
    answers: { pending: yes, live: "live", stale: yes, delivered: yes, acked: yes, dead_letter: yes, expired: yes },
  },
];
const CASES = DEEDS.flatMap((deed) => SITUATIONS.map((situation) => [deed.name, situation, deed.answers[situation], deed] as const));

test.each(CASES)("%s of a %s row answers %s", (_, situation, answer, deed) => {
  const db = memory();
  MAKE[situation](db);
  const before = everything(db);
  const old = row(db, 1);
  const outcome = deed.perform(db);
  expect(outcome).toEqual({ outcome: answer, row: old } as OperatorOutcome);
  if (answer === "changed") expect(audit(db, old.id)).toHaveLength(1);
  else expect(everything(db)).toEqual(before);
});

test.each(CASES)("a dry run of %s of a %s row answers %s too, and changes nothing", (_, situation, answer, deed) => {
  const db = memory();
  MAKE[situation](db);
  const before = everything(db);
  expect(deed.perform(db, true).outcome).toBe(answer);
  expect(everything(db)).toEqual(before);
});

test("a row that is not there is not_found, by number and by id", () => {
  const db = memory();
  for (const ref of [NOBODY, { seq: 1 }])
    expect([retry(db, ref, BY), cancel(db, ref, BY), purge(db, ref, BY)].map((answer) => answer.outcome)).toEqual(
      Array(3).fill("not_found"),
    );
  expect(everything(db)).toEqual([[], [], []]);
});

describe("retry()", () => {
  test.each(["dead_letter", "expired"] as const)("puts a %s row back as new, in one history row and one audit row", (from) => {
    const db = memory();
    MAKE[from](db);
    const { id, attempt, last_error } = row(db, 1);
    retry(db, { id }, BY);
    expect(row(db, 1)).toMatchObject({
      id,
      seq: 1,
      status: "pending",
      attempt: 0,
      unresolved: 0,
      next_attempt_at: NOW,
      last_error: null,
      updated_at: NOW,
      reason_code: "dispatch.pending.operator_retry",
      reason_summary: `put back by an operator from ${from}`,
      source: "operator",
      actor: "anna",
      metadata: "{}",
    });
    expect(db.query("SELECT previous_status, status, actor FROM status_transitions ORDER BY id DESC").get()).toEqual({
      previous_status: from,
      status: "pending",
      actor: "anna",
    });
    expect(audit(db, id)).toEqual([
      {
        id: 1,
        created_at: NOW,
        action: "dispatch.retry",
        target_id: id,
        actor: "anna",
        details: JSON.stringify({ status: from, attempt, last_error }),
      },
    ]);
  });

  test("gives it all its attempts again", () => {
    const db = memory();
    MAKE.dead_letter(db);
    retry(db, { seq: 1 }, BY);
    expect(take(db, NOW)).toMatchObject({ status: "delivering", attempt: 1 });
  });

  test("can put it off", () => {
    const db = memory();
    MAKE.dead_letter(db);
    retry(db, { seq: 1 }, { ...BY, dueAt: NOW + 30 });
    expect([take(db, NOW + 29), take(db, NOW + 30)?.status]).toEqual([null, "delivering"]);
  });

  test.each([
    ["no expiry", null, undefined, undefined, "changed", null],
    ["an expiry ahead", NOW + 5, undefined, undefined, "changed", NOW + 5],
    ["an expiry that is now", NOW, undefined, undefined, "past_expiry", NOW],
    ["an expiry that has passed", NOW - 5, undefined, undefined, "past_expiry", NOW - 5],
    ["an expiry that has passed, and a new one", NOW - 5, NOW + 9, undefined, "changed", NOW + 9],
    ["an expiry ahead, and a new one that has passed", NOW + 5, NOW - 1, undefined, "past_expiry", NOW + 5],
    ["an expiry before it is due", NOW + 5, undefined, NOW + 6, "expires_first", NOW + 5],
    ["an expiry when it is due", NOW + 5, undefined, NOW + 5, "expires_first", NOW + 5],
    ["a new expiry before it is due", null, NOW + 5, NOW + 6, "expires_first", null],
    ["a new expiry for a row that had none", null, NOW + 9, undefined, "changed", NOW + 9],
  ] as const)("of a row with %s", (_, expiry, expiresAt, dueAt, outcome, after) => {
    const db = memory();
    MAKE.dead_letter(db);
    db.query("UPDATE dispatch_outbox SET expires_at = ?").run(expiry);
    const terms = { ...BY, ...(expiresAt === undefined ? {} : { expiresAt }), ...(dueAt === undefined ? {} : { dueAt }) };
    expect(retry(db, { seq: 1 }, { ...terms, dryRun: true }).outcome).toBe(outcome);
    expect(retry(db, { seq: 1 }, terms).outcome).toBe(outcome);
    expect(row(db, 1)).toMatchObject({ expires_at: after, status: outcome === "changed" ? "pending" : "dead_letter" });
    expect(count(db, "admin_events")).toBe(outcome === "changed" ? 1 : 0);
  });
});

describe("cancel()", () => {
  test.each(["pending", "stale"] as const)("ends a %s row as expired", (situation) => {
    const db = memory();
    MAKE[situation](db);
    const { id, attempt } = row(db, 1);
    cancel(db, { id }, BY);
    expect(row(db, 1)).toMatchObject({
      status: "expired",
      reason_code: "dispatch.expired.cancelled",
      attempt,
      lock_token: null,
      holder: null,
      updated_at: NOW,
      source: "operator",
      actor: "anna",
    });
    expect(audit(db, id)).toMatchObject([{ action: "dispatch.cancel", actor: "anna", created_at: NOW }]);
    expect(take(db, NOW + 1e6)).toBeNull();
  });

  test("waits for the end of the lease to the instant", () => {
    const db = memory();
    enter(db);
    take(db, T0);
    expect(cancel(db, { seq: 1 }, { ...BY, now: T0 + 14.999 }).outcome).toBe("live");
    expect(cancel(db, { seq: 1 }, { ...BY, now: T0 + 15 }).outcome).toBe("changed");
  });
});

describe("purge()", () => {
  test("takes the row, its history and its key, and leaves an audit row", () => {
    const db = memory();
    const other = enter(db);
    const { id } = enter(db, { dedup_key: "k" });
    cancel(db, { id }, BY);
    purge(db, { id }, BY);
    expect(db.query("SELECT seq FROM dispatch_outbox").values()).toEqual([[1]]);
    expect(db.query("SELECT DISTINCT entity_id FROM status_transitions").values()).toEqual([[other.id]]);
    expect(audit(db, id).map((event) => [event.action, JSON.parse(event.details)])).toEqual([
      ["dispatch.cancel", { status: "pending", attempt: 0 }],
      ["dispatch.purge", { seq: 2, kind: "ping", deliver_to: "seat-1", status: "expired", attempt: 0, forced: false }],
    ]);
    expect(enter(db, { dedup_key: "k" }).outcome).toBe("created");
  });

  test("takes a live row by force only, and says so", () => {
    const db = memory();
    MAKE.live(db);
    const { id } = row(db, 1);
    expect(purge(db, { id }, BY).outcome).toBe("live");
    expect(purge(db, { id }, { ...BY, force: true, dryRun: true }).outcome).toBe("changed");
    expect(count(db, "dispatch_outbox")).toBe(1);
    expect(purge(db, { id }, { ...BY, force: true }).outcome).toBe("changed");
    expect(JSON.parse(audit(db, id)[0]?.details ?? "")).toMatchObject({ status: "delivering", forced: true });
  });

  test("leaves the history of other things that have the same id alone", () => {
    const db = memory();
    const { id } = enter(db);
    db.query(
      "INSERT INTO status_transitions (entity_type, entity_id, status, reason_code, reason_summary, source, actor, created_at) VALUES ('session', ?, 's', 'r', '', '', '', 0)",
    ).run(id);
    purge(db, { id }, BY);
    expect(db.query("SELECT entity_type FROM status_transitions").values()).toEqual([["session"]]);
  });
});
