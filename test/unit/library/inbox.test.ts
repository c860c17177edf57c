import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { ownHolder } from "../../../src/host.ts";
import { enqueue, inbox, type InboxClaim, install, OutboxError } from "../../../src/index.ts";
import { count, scratch } from "../../fixtures/world.ts";

const ID = "0a".repeat(16);

/** A consumer's database: a table of its own and ours. */
function accounts(path = ":memory:"): Database {
  const db = new Database(path);
  db.run("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)");
  db.run("INSERT INTO accounts VALUES (7, 100)");
  install(db);
  return db;
}
const balance = (db: Database): unknown => db.query("SELECT balance FROM accounts").values()[0]?.[0];

function refusal(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    if (error instanceof OutboxError) return `${error.kind}: ${error.message}; ${error.hint}`;
    throw error;
  }
  return "accepted";
}

function begun(db: Database, consumer = "billing", id: string | number = ID): InboxClaim {
  const answer = inbox.begin(db, consumer, id);
  if (answer.outcome !== "begun") throw new Error(`it is ${answer.outcome}`);
  return answer.claim;
}

describe("in one transaction", () => {
  /** As the documentation shows it. */
  const charge = (db: Database, meanwhile = (): void => {}): string =>
    db
      .transaction(() => {
        const answer = inbox.begin(db, "billing", ID);
        if (answer.outcome !== "begun") return answer.outcome;
        db.run("UPDATE accounts SET balance = balance - 5 WHERE id = 7");
        meanwhile();
        return inbox.complete(db, answer.claim);
      })
      .immediate();

  test("the changes and the mark commit together, and the second time nothing happens", () => {
    const db = accounts();
    expect([charge(db), charge(db), charge(db)]).toEqual(["completed", "duplicate", "duplicate"]);
    expect(balance(db)).toBe(95);
  });

  test("a rollback abandons both, and the next time begins anew", () => {
    const db = accounts();
    let claim: InboxClaim | null = null;
    const failing = db.transaction(() => {
      claim = begun(db);
      db.run("UPDATE accounts SET balance = 0");
      inbox.complete(db, claim);
      throw new Error("changed its mind");
    });
    expect(() => failing()).toThrow("changed its mind");
    expect([balance(db), count(db, "dispatch_inbox")]).toEqual([100, 0]);
    expect(claim === null ? null : inbox.complete(db, claim)).toBe("lost");
    expect(charge(db)).toBe("completed");
  });

  test("neither begins nor commits: a BEGIN of the program's own is left open", () => {
    const db = accounts();
    db.run("BEGIN");
    const claim = begun(db);
    expect(inbox.begin(db, "billing", ID)).toMatchObject({ outcome: "held", holder: ownHolder() });
    expect(inbox.complete(db, claim)).toBe("completed");
    expect(inbox.begin(db, "billing", ID).outcome).toBe("duplicate");
    expect(inbox.abandon(db, begun(db, "audit"))).toBe("abandoned");
    expect(db.inTransaction).toBe(true);
    db.run("ROLLBACK");
    expect(count(db, "dispatch_inbox")).toBe(0);
  });

  test("a killed program leaves no trace of it", async () => {
    using dir = scratch();
    const path = dir.file("accounts.db");
    const db = accounts(path);
    const program = `
      import { Database } from "bun:sqlite";
      import { inbox } from ${JSON.stringify(`${import.meta.dir}/../../../src/index.ts`)};
      const db = new Database(${JSON.stringify(path)});
      db.run("BEGIN IMMEDIATE");
      const begun = inbox.begin(db, "billing", "${ID}");
      db.run("UPDATE accounts SET balance = 0");
      inbox.complete(db, begun.claim);
      process.kill(process.pid, "SIGKILL");`;
    const child = Bun.spawn([process.execPath, "-e", program], { stdin: "ignore" });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    expect(charge(db)).toBe("completed");
    expect(balance(db)).toBe(95);
  });
});

describe("around an await", () => {
  test("what is begun is held until it is completed, and then a duplicate", async () => {
    const db = accounts();
    const claim = begun(db);
    expect(db.inTransaction).toBe(false);
    await Promise.resolve();
    expect(inbox.begin(db, "billing", ID).outcome).toBe("held");
    expect(inbox.complete(db, claim)).toBe("completed");
    expect(inbox.begin(db, "billing", ID)).toMatchObject({ outcome: "duplicate", done_at: expect.any(Number) });
  });

  test("what failed is abandoned and begins anew", () => {
    const db = accounts();
    const claim = begun(db);
    expect([inbox.abandon(db, claim), inbox.abandon(db, claim), inbox.complete(db, claim)]).toEqual(["abandoned", "lost", "lost"]);
    expect(inbox.complete(db, begun(db))).toBe("completed");
  });

  test("a program that died with it leaves it to the next", async () => {
    using dir = scratch();
    const path = dir.file("accounts.db");
    const db = accounts(path);
    const program = `
      import { Database } from "bun:sqlite";
      import { inbox } from ${JSON.stringify(`${import.meta.dir}/../../../src/index.ts`)};
      const begun = inbox.begin(new Database(${JSON.stringify(path)}), "billing", "${ID}");
      console.log(JSON.stringify(begun.claim));
      await Bun.stdin.text();
      process.kill(process.pid, "SIGKILL");`;
    const child = Bun.spawn([process.execPath, "-e", program], { stdin: "pipe", stdout: "pipe" });
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    expect(inbox.begin(db, "billing", ID).outcome).toBe("held");
    void child.stdin.end();
    await child.exited;
    const claim = begun(db);
    // The stale token of the dead changes nothing.
    expect(inbox.complete(db, JSON.parse(new TextDecoder().decode(value)) as InboxClaim)).toBe("lost");
    expect(inbox.complete(db, claim)).toBe("completed");
  });
});

test("a message of this database may be named by its number, and is the same by its id", () => {
  const db = accounts();
  const { id, seq } = enqueue(db, { kind: "k", deliver_to: "d" });
  expect(inbox.complete(db, begun(db, "c", seq))).toBe("completed");
  expect([id, seq, String(seq)].map((name) => inbox.begin(db, "c", name).outcome)).toEqual(Array(3).fill("duplicate"));
});

test.each([
  ["", "data: the consumer is empty; "],
  ["a\0", "data: the consumer holds a NUL character; "],
  ["x".repeat(256), "data: the consumer has 256 bytes; the limit is 255; "],
  [7, "data: the consumer is a number, not a text; "],
])("refuses the consumer %j", (consumer, said) => {
  expect(refusal(() => inbox.begin(accounts(), consumer as string, ID))).toBe(said);
});

test.each([
  ["zz", 'data: the id "zz" is none; it is 32 hex digits, or the number of a dispatch in this database'],
  [ID.toUpperCase(), `data: the id "${ID.toUpperCase()}" is none; it is 32 hex digits, or the number of a dispatch in this database`],
  [417, "no: there is no dispatch 417 in :memory:; name one of another database by its 32 hex digits"],
  [null, "data: the id is null, neither a text nor a number; "],
])("refuses the id %j", (id, said) => {
  expect(refusal(() => inbox.begin(accounts(), "c", id as string))).toBe(said);
});

test("refuses what is no claim, and a database without the tables, before it does anything", () => {
  const said = "data: the claim is none; it is the `claim` of what inbox.begin answers when it has begun";
  for (const wrong of [null, undefined, 7, {}, { consumer: "c", dispatch_id: ID }, inbox.begin(accounts(), "c", ID)]) {
    expect(refusal(() => inbox.complete(accounts(), wrong as InboxClaim))).toBe(said);
    expect(refusal(() => inbox.abandon(accounts(), wrong as InboxClaim))).toBe(said);
  }
  expect(refusal(() => inbox.begin(new Database(":memory:"), "c", ID))).toStartWith("no: database :memory: has no outbox tables");
});

test("works on a handle with safeIntegers, and leaves it as it is", () => {
  const db = new Database(":memory:", { safeIntegers: true, strict: true });
  install(db);
  const claim = begun(db);
  expect([inbox.complete(db, claim), inbox.complete(db, claim)]).toEqual(["completed", "lost"]);
  expect(db.query("SELECT 1 AS n").get()).toEqual({ n: 1n });
});
