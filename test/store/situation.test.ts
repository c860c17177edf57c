/** What is in a row's way, as lists tell it. */
import { expect, test } from "bun:test";
import { hold, noteFailure } from "../../src/store/gates.ts";
import { byRef } from "../../src/store/queries.ts";
import { situated } from "../../src/store/situation.ts";
import { enter, memory, T0, take } from "../fixtures/world.ts";

const SCOPE = { deliverTo: "seat-2", kind: null, orderingKey: null };

test("situated() says which earlier row, which hold and which circuit is in the way, and nothing of rows that have ended", () => {
  const db = memory();
  const first = enter(db, { ordering_key: "k" });
  const second = enter(db, { ordering_key: "k" });
  const held = enter(db, { deliver_to: "seat-2" });
  const failing = enter(db, { deliver_to: "seat-3" });
  hold(db, SCOPE, { now: T0, actor: "me", note: null, endsAt: T0 + 60 });
  noteFailure(db, "seat-3", { failures: 1, cooldownS: 60 }, T0);
  const rows = [first, second, held, failing].flatMap(({ seq }) => byRef(db, { seq }) ?? []);
  const told = (now: number): unknown[] =>
    situated(db, rows, now).map(({ waits_for, held_by, open_until }) => [waits_for, held_by, open_until]);
  expect(told(T0)).toEqual([
    [null, null, null],
    [first.seq, null, null],
    [null, 1, null],
    [null, null, T0 + 60],
  ]);
  // A hold whose time is over is in nobody's way, although the next claim has yet to remove it.
  expect(told(T0 + 60)[2]).toEqual([null, null, null]);
  const ended = rows.map((row) => ({ ...row, status: "delivered" as const }));
  expect(situated(db, ended, T0).every(({ waits_for, held_by, open_until }) => (waits_for ?? held_by ?? open_until) === null)).toBe(true);
});

test("situated() keeps the order and every column", () => {
  const db = memory();
  enter(db);
  enter(db);
  take(db, T0);
  const rows = [2, 1].flatMap((seq) => byRef(db, { seq }) ?? []);
  expect(situated(db, rows, T0)).toEqual(rows.map((row) => ({ ...row, waits_for: null, held_by: null, open_until: null })));
});
