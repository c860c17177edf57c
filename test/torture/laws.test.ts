/** The laws bite: whatever is broken in a database is told. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { enqueue, install } from "../../src/index.ts";
import { broken, lost, type Move, NOTHING, notesOf, open, type Row, unclaimed, unlawful } from "./laws.ts";

const ID = "0".repeat(31).concat("1");

/** A database with two messages, and what a test breaks in it. */
function told(breaking: (db: Database) => void, promised = NOTHING): string[] {
  using db = new Database(":memory:", { strict: true });
  install(db);
  for (const dedup_key of ["a", "b"]) enqueue(db, { kind: "ping", deliver_to: "seat-1", dedup_key });
  breaking(db);
  return broken(db, 0, promised);
}

test("a database that is whole breaks nothing", () => {
  expect(told(() => undefined)).toEqual([]);
});

test("a file without tables breaks nothing as long as nothing was answered", () => {
  using db = new Database(":memory:");
  expect(broken(db, 0, NOTHING)).toEqual([]);
  expect(broken(db, 0, { ...NOTHING, ids: [ID] })).toEqual([`lost: ${ID} was answered`]);
});

test.each([
  ["a history row that was cut", "DELETE FROM status_transitions WHERE id = 2", /no history/],
  ["a history of nothing", `UPDATE status_transitions SET entity_id = '${ID}' WHERE id = 1`, /a history without a row/],
  ["a history that ends elsewhere", "UPDATE status_transitions SET status = 'acked' WHERE id = 1", /its history ends acked/],
  ["a move that is not in the lifecycle", "UPDATE status_transitions SET reason_code = 'x' WHERE id = 1", /an unlawful move/],
  ["a cache that is wrong", "UPDATE dispatch_destinations SET due_at = due_at + 1", /due_at is not the first due time/],
  ["a schema that is gone", "DROP TABLE dispatch_schema", /the schema is not among them/],
] as const)("%s is told", (_, sql, expected) => {
  expect(told((db) => db.run(sql)).join("\n")).toMatch(expected);
});

test("a file of which a page was lost is told", () => {
  using whole = new Database(":memory:", { strict: true });
  install(whole);
  enqueue(whole, { kind: "ping", deliver_to: "seat-1" });
  const bytes = whole.serialize();
  const [pages] = whole.query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_schema WHERE name = 'status_transitions'").all();
  bytes.fill(0, ((pages?.rootpage ?? 1) - 1) * 4_096, (pages?.rootpage ?? 1) * 4_096);
  using torn = Database.deserialize(bytes);
  expect(() => {
    const found = broken(torn, 0, NOTHING);
    if (found.length > 0) throw new Error(found.join("\n"));
  }).toThrow(/integrity|malformed/);
});

const row: Row = {
  id: ID,
  seq: 1,
  status: "delivered",
  attempt: 1,
  max_attempts: 2,
  reason_code: "dispatch.delivered.transport_ok",
  dedup_key: null,
  ack_required: 0,
  kind: "ping",
  deliver_to: "seat-1",
};
type Step = readonly [from: Row["status"] | null, to: Row["status"], reason: string, attempt?: number];
const history = (...steps: readonly Step[]): Move[] =>
  steps.map(([previous_status, status, reason, attempt = null]) => ({
    entity_id: ID,
    previous_status,
    status,
    reason_code: `dispatch.${reason}`,
    attempt,
  }));
const BORN: Step = [null, "pending", "pending.enqueued"];
const claim = (attempt: number): Step => ["pending", "delivering", "delivering.attempt", attempt];
const SENT: Step = ["delivering", "delivered", "delivered.transport_ok", 1];
const FAILED: Step = ["delivering", "pending", "pending.retry_backoff", 1];
const RELEASED: Step = ["delivering", "pending", "pending.released", 0];

test("attempts are counted as they are given: claimed, given back, begun anew", () => {
  expect(unlawful([row], history(BORN, claim(1), SENT))).toEqual([]);
  expect(unlawful([row], history(BORN, claim(1), RELEASED, claim(1), SENT))).toEqual([]);
  const dead: Step = ["delivering", "dead_letter", "dead_letter.max_attempts", 2];
  const again: Step = ["dead_letter", "pending", "pending.operator_retry"];
  expect(unlawful([row], history(BORN, claim(1), FAILED, claim(2), dead, again, claim(1), SENT))).toEqual([]);
});

test.each([
  ["a move without the one before it", row, [BORN, SENT], /a gap in its history/],
  ["an attempt that was not counted", row, [BORN, claim(1), FAILED, claim(1), SENT], /claim 2 is noted as attempt 1/],
  ["a claim too many", { ...row, attempt: 3 }, [BORN, claim(1), FAILED, claim(2), FAILED, claim(3), SENT], /3 claims, 2 allowed/],
  ["an attempt that the history does not know", { ...row, attempt: 2 }, [BORN, claim(1), SENT], /its history counts 1/],
] as const)("%s is told", (_, row, steps, expected) => {
  expect(unlawful([row], history(...steps)).join("\n")).toMatch(expected);
});

test("one key on two rows is told", () => {
  const [first, second] = [
    { ...row, dedup_key: "a" },
    { ...row, id: "2", dedup_key: "a" },
  ];
  expect(unlawful([first, second], []).join("\n")).toContain("the key a is on 2 rows");
});

test("what was answered and is lost is told, and what was deleted and is back", () => {
  const move = { id: ID, reason: "dispatch.delivering.attempt", attempt: 1 };
  const moves = history(BORN, claim(1));
  expect(lost([row], moves, { ids: [ID], moves: [move], gone: [] })).toEqual([]);
  expect(lost([], moves, { ids: [ID], moves: [], gone: [] })).toEqual([`lost: ${ID} was answered`]);
  expect(lost([row], moves, { ids: [], moves: [move, move], gone: [] })).toHaveLength(1);
  expect(lost([row], moves, { ids: [], moves: [], gone: [ID] })).toEqual([`back again: ${ID} was answered to be deleted`]);
});

test("a command without a claim, a second one of a claim, and a delivery without a command are told", () => {
  const moves = history(BORN, claim(1), SENT);
  const notes = (text: string): string[] => unclaimed([row], moves, notesOf(text));
  expect(notes(`start ${ID} 1 7\nend ${ID} 1 7 0\n`)).toEqual([]);
  expect(notes(`start ${ID} 1 7\nend ${ID} 1 7 0\nstart ${ID} 1 8\n`)).toEqual([`${ID} 1: 2 commands, 1 claims`]);
  expect(notes(`start ${ID} 2 7\nend ${ID} 2 7 0\n`)).toEqual([`${ID} 2: 1 commands, 0 claims`]);
  expect(notes(`start ${ID} 1 7\nend ${ID} 1 7 1\n`)).toEqual([`${ID}: delivered, and no command took it`]);
});

test("what came to no end is told", () => {
  expect(open([row, { ...row, status: "delivering" }])).toEqual([`${ID}: came to no end, it is delivering`]);
});
