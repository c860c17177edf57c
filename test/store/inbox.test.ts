import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Standing } from "../../src/core/seams.ts";
import { hostHolders, ownHolder, standingOf } from "../../src/host.ts";
import { abandon, begin, type Begun, complete, idOf, type InboxClaim, TAKE_OVER_UNKNOWN_S } from "../../src/store/inbox.ts";
import { openInbox } from "../../src/store/inbox_store.ts";
import { openDatabase } from "../../src/store/open.ts";
import { terms } from "../fixtures/store/terms.ts";
import { count, countedEntropy, enter, handClock, memory, scratch, T0 } from "../fixtures/world.ts";

const ID = "0a".repeat(16);
const entropy = countedEntropy();

interface Asked {
  readonly consumer?: string;
  readonly id?: string;
  readonly now?: number;
  readonly holder?: string;
  readonly standing?: Standing;
}

function ask(db: Database, { consumer = "c", id = ID, now = T0, holder = "desk 1 1", standing = "alive" }: Asked = {}): Begun {
  return begin(db, { consumer, id }, { now, holder, token: entropy.token(), standing: () => standing });
}

function begun(db: Database, asked: Asked = {}): InboxClaim {
  const answer = ask(db, asked);
  if (answer.outcome !== "begun") throw new Error(`it is ${answer.outcome}`);
  return answer.claim;
}

const entries = (db: Database): unknown[] => db.query("SELECT * FROM dispatch_inbox ORDER BY consumer, dispatch_id").all();

describe("an inbox", () => {
  test("begins what nobody has begun, and holds it against everybody else", () => {
    const db = memory();
    expect(begun(db)).toMatchObject({ consumer: "c", dispatch_id: ID });
    expect(ask(db, { holder: "desk 2 2", now: T0 + 5 })).toEqual({ outcome: "held", holder: "desk 1 1", begun_at: T0 });
    expect(ask(db)).toMatchObject({ outcome: "held" }); // also against who holds it
  });

  test("tells a duplicate once the success is recorded, for ever", () => {
    const db = memory();
    expect(complete(db, begun(db), T0 + 3)).toBe("completed");
    for (const standing of ["alive", "gone", "unknown"] as const)
      expect(ask(db, { standing, now: T0 + 1e9 })).toEqual({ outcome: "duplicate", done_at: T0 + 3 });
    expect(entries(db)).toEqual([{ consumer: "c", dispatch_id: ID, begun_at: T0, holder: null, token: null, done_at: T0 + 3 }]);
  });

  test("begins anew what was abandoned", () => {
    const db = memory();
    expect(abandon(db, begun(db))).toBe("abandoned");
    expect(count(db, "dispatch_inbox")).toBe(0);
    begun(db);
  });

  test("is one for each consumer, and knows messages of other databases", () => {
    const db = memory();
    complete(db, begun(db), T0);
    begun(db, { consumer: "d" });
    begun(db, { id: "0b".repeat(16) });
    expect(ask(db).outcome).toBe("duplicate");
  });

  test.each([
    ["alive", 1e9, "held"],
    ["gone", 0, "begun"],
    ["unknown", TAKE_OVER_UNKNOWN_S - 1, "held"],
    ["unknown", TAKE_OVER_UNKNOWN_S, "begun"],
  ] as const)("an entry whose process is %s is, after %d s, %s", (standing, later, outcome) => {
    const db = memory();
    begun(db);
    expect<string>(ask(db, { standing, now: T0 + later }).outcome).toBe(outcome);
  });

  test("who lost an entry changes nothing", () => {
    const db = memory();
    const first = begun(db);
    const second = begun(db, { standing: "gone", holder: "desk 2 2", now: T0 + 9 });
    const before = entries(db);
    expect(before).toEqual([{ consumer: "c", dispatch_id: ID, begun_at: T0 + 9, holder: "desk 2 2", token: second.token, done_at: null }]);
    expect([complete(db, first, T0), abandon(db, first)]).toEqual(["lost", "lost"]);
    expect(entries(db)).toEqual(before);
    expect(complete(db, second, T0 + 10)).toBe("completed");
    expect([complete(db, second, T0 + 11), abandon(db, second)]).toEqual(["lost", "lost"]);
    expect(ask(db)).toEqual({ outcome: "duplicate", done_at: T0 + 10 });
  });

  test("a claim of one message or consumer is none of another", () => {
    const db = memory();
    const claim = begun(db);
    begun(db, { consumer: "d" });
    expect(complete(db, { ...claim, consumer: "d" }, T0)).toBe("lost");
    expect(complete(db, { ...claim, dispatch_id: "0b".repeat(16) }, T0)).toBe("lost");
    expect(complete(db, { ...claim, token: "" }, T0)).toBe("lost");
    expect(complete(db, claim, T0)).toBe("completed");
  });

  test("resolves a number in its database, and takes an id as it is", () => {
    const db = memory();
    const { id, seq } = enter(db);
    expect([idOf(db, { seq }), idOf(db, { seq: seq + 1 }), idOf(db, { id: ID })]).toEqual([id, null, ID]);
  });

  test.each([
    ["consumer_is_not_empty", "'', $id, 1, 'h', 't', NULL"],
    ["consumer_has_no_nul", "'a' || char(0), $id, 1, 'h', 't', NULL"],
    ["consumer_has_at_most_255_bytes", "printf('%.128c', 'ä'), $id, 1, 'h', 't', NULL"],
    ["dispatch_id_is_32_hex_digits", "'c', upper($id), 1, 'h', 't', NULL"],
    ["dispatch_id_is_32_hex_digits", "'c', $id || '0', 1, 'h', 't', NULL"],
    ["token_if_and_only_if_not_done", "'c', $id, 1, 'h', NULL, NULL"],
    ["holder_if_and_only_if_not_done", "'c', $id, 1, 'h', NULL, 1"],
    ["begun_at_is_finite", "'c', $id, 9e999, 'h', 't', NULL"],
    ["done_at_is_finite", "'c', $id, 1, NULL, NULL, 9e999"],
  ])("the database itself holds that %s", (constraint, values) => {
    const db = memory();
    expect(() => db.query(`INSERT INTO dispatch_inbox VALUES (${values})`).run({ id: ID })).toThrow(constraint);
  });

  test("over two connections: one begins, and a rollback leaves it to the other", async () => {
    using dir = scratch();
    const path = dir.file("a.db");
    const first = await openDatabase(terms(path));
    const second = await openInbox({ ...terms(path), busyMs: 0 }, { clock: handClock(), entropy });
    const asked = { holder: "desk 2 2", standing: () => "alive" as const };
    first.run("BEGIN");
    begun(first);
    expect(second.begin("c", { id: ID }, asked)).rejects.toThrow("holds its write lock");
    first.run("ROLLBACK");
    const answer = await second.begin("c", { id: ID }, asked);
    expect(ask(first)).toMatchObject({ outcome: "held", holder: "desk 2 2" });
    expect(await second.begin("c", { seq: 7 }, asked)).toBeNull();
    if (answer?.outcome !== "begun") throw new Error("it was free");
    expect(await second.complete(answer.claim)).toBe("completed");
    expect(await second.abandon(answer.claim)).toBe("lost");
    expect(ask(first).outcome).toBe("duplicate");
    second.close();
    first.close();
  });
});

describe("what is known of a holder", () => {
  const [host = "", , start = ""] = /^(.*) ([0-9]+) ([0-9]+)$/s.exec(ownHolder())?.slice(1) ?? [];

  test("this process is alive, and one that came after another with its number is not that other", async () => {
    const holders = await hostHolders();
    const isSeen = process.platform === "linux";
    expect(standingOf(ownHolder())).toBe(isSeen ? "alive" : "unknown");
    expect(standingOf(`${host} ${process.pid} ${Number(start) + 1}`)).toBe(isSeen ? "gone" : "unknown");
    expect(holders.isAlive(ownHolder())).toBe(true);
  });

  test("one that has ended, or never was, is gone", async () => {
    const child = Bun.spawn(["true"]);
    await child.exited;
    expect(standingOf(`${host} ${child.pid} 1`)).toBe("gone");
    expect(standingOf(`${host} 2147483647 1`)).toBe("gone");
  });

  test("of another host, or in words that are none of ours, nothing is known", () => {
    for (const holder of [`other${host} ${process.pid} ${start}`, "", "desk", `${process.pid} ${start}`])
      expect(standingOf(holder)).toBe("unknown");
  });
});
