import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { REASONS, shortReason, STATUSES } from "../../src/core/lifecycle.ts";
import { figures } from "../../src/store/figures.ts";
import { audit, byRef, history, list, nextMoment, type Page } from "../../src/store/queries.ts";
import type { Selection } from "../../src/store/selection.ts";
import { cancel, retry } from "../../src/store/operator.ts";
import { enter, memory, row, T0, take } from "../fixtures/world.ts";

const KINDS = ["ping", "Ping", 'quo"te', "ü"];
const SEATS = ["seat-1", "seat-2", "%", "_"];
const PAGE: Page = { selection: {}, limit: 0, oldestFirst: false, after: null };

/** A table with rows in every status and many shapes. */
function zoo(): Database {
  const db = memory();
  for (let n = 0; n < 40; n++) {
    enter(db, {
      kind: KINDS[n % 4] ?? "",
      deliver_to: SEATS[Math.floor(n / 4) % 4] ?? "",
      dedup_key: n % 3 === 0 ? `key-${n}` : null,
      ack_required: n % 5 === 0,
      max_attempts: 1,
      expires_at: n % 7 === 0 ? T0 + 20 : null,
    });
    if (n % 2 === 0) take(db, T0 + n / 10);
    if (n % 6 === 1) cancel(db, { seq: n + 1 }, { now: T0 + n / 10, actor: "anna" });
    if (n % 8 === 2)
      db.query(
        "UPDATE dispatch_outbox SET status = 'acked', reason_code = 'dispatch.acked.consumer', lock_token = NULL, holder = NULL, updated_at = ? WHERE seq = ? AND status = 'delivering'",
      ).run(T0 + n / 10, n + 1);
  }
  while (take(db, T0 + 17) !== null);
  for (const seq of [2, 8]) retry(db, { seq }, { now: T0 + 50, actor: "anna" });
  return db;
}

describe("list()", () => {
  const db = zoo();
  const all = db.query<Dispatch, []>("SELECT * FROM dispatch_outbox ORDER BY seq").all();

  function naive(selection: Selection): number[] {
    const any = (values: readonly string[] | undefined, value: string | null): boolean =>
      values === undefined || values.length === 0 || (value !== null && values.includes(value));
    return all
      .filter(
        (one) =>
          any(selection.status, one.status) &&
          any(selection.kind, one.kind) &&
          any(selection.to, one.deliver_to) &&
          any(selection.dedupKey, one.dedup_key) &&
          any(selection.orderingKey, one.ordering_key) &&
          any(selection.reason, shortReason(one.reason_code)) &&
          (selection.since === undefined || one.updated_at >= selection.since) &&
          (selection.before === undefined || one.updated_at < selection.before),
      )
      .map((one) => one.seq);
  }

  const some = <T extends string>(values: readonly T[]): fc.Arbitrary<T[]> => fc.subarray([...values]);
  const time = fc.constantFrom(T0, T0 + 1, T0 + 1.1, T0 + 17, T0 + 50, T0 + 99);
  const selections: fc.Arbitrary<Selection> = fc.record(
    {
      status: some(STATUSES),
      kind: some([...KINDS, "none"]),
      to: some([...SEATS, "none"]),
      dedupKey: some(["key-0", "key-3", "key-12", "none"]),
      orderingKey: fc.constant([]),
      reason: some([...new Set(REASONS.map(shortReason)), "pending.enqueued", "dispatch.pending.enqueued"]),
      since: time,
      before: time,
    },
    { requiredKeys: [] },
  );

  test("the table that it is tried on has rows in many statuses", () => {
    expect(new Set(all.map((one) => one.status)).size).toBeGreaterThanOrEqual(4);
    expect(new Set(all.map((one) => one.reason_code)).size).toBeGreaterThanOrEqual(5);
  });

  test("tells the rows that a plain filter finds, in either order", () => {
    fc.assert(
      fc.property(selections, (selection) => {
        const expected = naive(selection);
        expect(list(db, { ...PAGE, selection, oldestFirst: true }).map((one) => one.seq)).toEqual(expected);
        expect(list(db, { ...PAGE, selection }).map((one) => one.seq)).toEqual(expected.toReversed());
      }),
      { numRuns: 300 },
    );
  });

  test("pages follow each other without gap or repetition", () => {
    fc.assert(
      fc.property(selections, fc.integer({ min: 1, max: 13 }), fc.boolean(), (selection, limit, oldestFirst) => {
        const seen: number[] = [];
        for (let after: number | null = null; ;) {
          const page = list(db, { selection, limit, oldestFirst, after });
          expect(page.length).toBeLessThanOrEqual(limit);
          seen.push(...page.map((one) => one.seq));
          if (page.length < limit) break;
          after = page.at(-1)?.seq ?? null;
        }
        expect(oldestFirst ? seen : seen.toReversed()).toEqual(naive(selection));
      }),
      { numRuns: 100 },
    );
  });

  test("a page stays the same while rows are added", () => {
    const own = zoo();
    const page = { ...PAGE, limit: 5, after: 20 };
    const before = list(own, page);
    enter(own);
    expect(list(own, page)).toEqual(before);
  });

  test("tells every column but payload and tokens", () => {
    const [listed] = list(db, { ...PAGE, limit: 1 });
    const { payload, ack_token, lock_token } = row(db, 40);
    expect({ ...listed, payload, ack_token, lock_token }).toEqual(row(db, 40));
    expect(Object.keys(listed ?? {})).not.toContain("payload");
  });
});

test("byRef() finds by number and by id and answers null for neither", () => {
  const db = memory();
  const { id } = enter(db);
  expect(byRef(db, { id })).toEqual(row(db, 1));
  expect(byRef(db, { seq: 1 })).toEqual(row(db, 1));
  expect([byRef(db, { id: "0".repeat(32) }), byRef(db, { seq: 2 })]).toEqual([null, null]);
});

test("history() and audit() tell one dispatch, oldest first", () => {
  const db = memory();
  const { id } = enter(db);
  enter(db);
  cancel(db, { id }, { now: T0 + 1, actor: "anna" });
  retry(db, { id }, { now: T0 + 2, actor: "bert" });
  expect(history(db, id).map((move) => [move.previous_status, move.status, move.created_at])).toEqual([
    [null, "pending", T0],
    ["pending", "expired", T0 + 1],
    ["expired", "pending", T0 + 2],
  ]);
  expect(audit(db, id).map((event) => [event.action, event.actor])).toEqual([
    ["dispatch.cancel", "anna"],
    ["dispatch.retry", "bert"],
  ]);
});

describe("nextMoment()", () => {
  test("is null when nothing waits", () => {
    const db = memory();
    expect(nextMoment(db, T0)).toBeNull();
    enter(db);
    cancel(db, { seq: 1 }, { now: T0, actor: "anna" });
    expect(nextMoment(db, T0 - 100)).toBeNull();
  });

  test("is the earliest due time or lease end still ahead", () => {
    const db = memory();
    enter(db);
    enter(db, { not_before: T0 + 30 });
    expect(nextMoment(db, T0)).toBe(T0 + 30); // what is due is not ahead
    take(db, T0);
    expect(nextMoment(db, T0)).toBe(T0 + 15);
    expect(nextMoment(db, T0 + 15)).toBe(T0 + 30);
    expect(nextMoment(db, T0 + 30)).toBeNull();
  });
});

describe("figures()", () => {
  const ZERO = { pending: 0, delivering: 0, delivered: 0, acked: 0, dead_letter: 0, expired: 0 };
  const BOUNDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400];
  const lag = (...late: number[]) => ({
    count: late.length,
    sum: late.reduce((sum, each) => sum + each, 0),
    buckets: BOUNDS.map((le) => ({ le, count: late.filter((each) => each <= le).length })),
  });
  const OPEN = { open_circuits: 0, holds: 0, dead_letters: {}, lag: lag(), attempts: [], dead_letters_total: [] };

  test("are 0 when the table is empty", () => {
    expect(figures(memory(), T0)).toEqual({ depth: 0, oldest_due_age: 0, status: ZERO, ...OPEN });
  });

  test("count the statuses, and how long the first due row has waited", () => {
    const db = memory();
    enter(db, { not_before: T0 + 2 });
    enter(db, { not_before: T0 + 4 });
    expect(figures(db, T0 + 1)).toEqual({ depth: 2, oldest_due_age: 0, status: { ...ZERO, pending: 2 }, ...OPEN });
    expect(figures(db, T0 + 10).oldest_due_age).toBe(8);
    take(db, T0 + 10); // the first; its lease ends at T0 + 25
    expect(figures(db, T0 + 10)).toEqual({
      depth: 2,
      oldest_due_age: 6,
      status: { ...ZERO, pending: 1, delivering: 1 },
      ...OPEN,
      lag: lag(8),
    });
    cancel(db, { seq: 2 }, { now: T0 + 10, actor: "anna" });
    expect(figures(db, T0 + 24)).toEqual({
      depth: 1,
      oldest_due_age: 0,
      status: { ...ZERO, delivering: 1, expired: 1 },
      ...OPEN,
      lag: lag(8),
    });
    expect(figures(db, T0 + 26).oldest_due_age).toBe(1); // its runner vanished: it is due again
  });

  test("agree with a count by hand", () => {
    const db = zoo();
    const { status, depth } = figures(db, T0);
    for (const name of STATUSES) expect(status[name]).toBe(list(db, { ...PAGE, selection: { status: [name] } }).length);
    expect(depth).toBe(status.pending + status.delivering);
  });
});
