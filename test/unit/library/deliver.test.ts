/** A program delivers what it entered claimed. Real time, kept short by short leases. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { hostClock } from "../../../src/host.ts";
import {
  ack,
  type Claim,
  deliver,
  type Delivery,
  enqueue,
  type EnqueueRequest,
  get,
  type HandlerInput,
  install,
  OutboxError,
} from "../../../src/index.ts";
import { claimThis } from "../../../src/store/claim.ts";
import { hold, noteFailure } from "../../../src/store/gates.ts";
import { scratch, terms } from "../../fixtures/world.ts";

const PING: EnqueueRequest = { kind: "ping", deliver_to: "seat-1" };
const CLAIM = { claim: true, lease_seconds: 0.3 } as const;

function program(): { readonly db: Database; readonly other: Database; [Symbol.dispose](): void } {
  const dir = scratch();
  const db = new Database(dir.file("shop.db"), { strict: true });
  db.run("PRAGMA journal_mode = WAL");
  install(db);
  const other = new Database(dir.file("shop.db"), { strict: true });
  return {
    db,
    other,
    [Symbol.dispose]: () => {
      db.close();
      other.close();
      dir[Symbol.dispose]();
    },
  };
}

function claimed(db: Database, request: Partial<EnqueueRequest> = {}): Claim {
  const { claim } = enqueue(db, { ...PING, ...request }, CLAIM);
  if (claim === null) throw new Error("it was not claimed");
  return claim;
}

/** A runner takes it over, as if the lease were over. */
function takeOver(db: Database, { dispatch: { seq } }: Claim): void {
  db.run(`UPDATE dispatch_outbox SET next_attempt_at = created_at WHERE seq = ${seq}`);
  expect(claimThis(db, seq, terms(hostClock.now()), "another token")).toMatchObject({ attempt: 2 });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await hostClock.sleep(5);
}

async function refused(work: Promise<unknown>): Promise<string> {
  try {
    return `accepted ${JSON.stringify(await work)}`;
  } catch (error) {
    if (error instanceof OutboxError) return `${error.kind}: ${error.message}`;
    throw error;
  }
}

const never = (): never => {
  throw new Error("it ran");
};

describe("enqueue() with claim", () => {
  test("answers with the row leased, in the program's transaction", () => {
    using place = program();
    const { db, other } = place;
    const answer = db.transaction(() => enqueue(db, PING, { claim: true }))();
    expect(answer).toMatchObject({ outcome: "created", status: "delivering", attempt: 1, refusal: null, claim: { lease_seconds: 15 } });
    const lease = (answer.claim?.dispatch.next_attempt_at ?? 0) - hostClock.now();
    expect(lease).toBeWithin(14, 15.01);
    expect(get(other, answer.id)).toMatchObject({ status: "delivering", attempt: 1, holder: expect.stringMatching(/^\S+ \d+ \d+$/) });
  });

  const NOW = hostClock.now();
  test.each<[string, Partial<EnqueueRequest>, (db: Database) => unknown]>([
    ["duplicate", { dedup_key: "once" }, (db) => enqueue(db, { ...PING, dedup_key: "once" })],
    ["behind its key", { ordering_key: "k" }, (db) => enqueue(db, { ...PING, ordering_key: "k" })],
    ["held", {}, (db) => hold(db, { deliverTo: null, kind: null, orderingKey: null }, { now: NOW, actor: "me", endsAt: null, note: null })],
    ["circuit open", {}, (db) => noteFailure(db, "seat-1", { failures: 1, cooldownS: 60 }, hostClock.now())],
    ["destination full", {}, (db) => enqueue(db, PING, { claim: true })],
    ["not due", { not_before: NOW + 600 }, () => {}],
    ["expired", { expires_at: NOW - 60 }, () => {}],
  ])("refused because %j answers with no claim, and it stays with a runner", (refusal, request, prepare) => {
    using place = program();
    prepare(place.db);
    const answer = enqueue(place.db, { ...PING, ...request }, { claim: true, per_destination: 1 });
    expect(answer).toMatchObject({ claim: null, refusal, status: "pending", attempt: 0 });
  });

  test.each([{ lease_seconds: 0 }, { lease_seconds: Number.NaN }, { per_destination: 0 }, { per_destination: 1.5 }])(
    "refuses %j",
    (wrong) => {
      using place = program();
      expect(() => enqueue(place.db, PING, { claim: true, ...wrong })).toThrow(/is not a (whole )?number/);
      expect(get(place.db, 1)).toBeNull();
    },
  );
});

describe("deliver() runs nothing", () => {
  test("after a rollback", async () => {
    using place = program();
    const { db } = place;
    db.run("BEGIN");
    const claim = claimed(db);
    db.run("ROLLBACK");
    expect(await deliver(db, claim, never)).toEqual({ outcome: "not_ours" });
    // Its number is another row's now.
    claimed(db);
    expect(await deliver(db, claim, never)).toEqual({ outcome: "not_ours" });
  });

  test("before the commit: on that handle it throws, on another it says so without waiting for the lock", async () => {
    using place = program();
    const { db, other } = place;
    db.run("BEGIN IMMEDIATE");
    const claim = claimed(db);
    expect(await refused(deliver(db, claim, never))).toBe("usage: deliver stands in a transaction, so what it delivers is not committed");
    expect(await deliver(other, claim, never)).toEqual({ outcome: "not_ours" });
    db.run("COMMIT");
    expect(await deliver(db, claim, () => {})).toEqual({ outcome: "delivered", status: "delivered" });
  });

  test("once a runner took over", async () => {
    using place = program();
    const claim = claimed(place.db);
    takeOver(place.other, claim);
    expect(await deliver(place.db, claim, never)).toEqual({ outcome: "not_ours" });
    expect(get(place.db, 1)).toMatchObject({ status: "delivering", attempt: 2, lock_token: "another token" });
  });

  test("a second time, neither beside the first nor after it", async () => {
    using place = program();
    const claim = claimed(place.db);
    let ran = 0;
    const both = await Promise.all([1, 2].map(() => deliver(place.db, claim, () => (ran += 1))));
    expect(both).toEqual([{ outcome: "delivered", status: "delivered" }, { outcome: "not_ours" }]);
    expect(await deliver(place.db, claim, never)).toEqual({ outcome: "not_ours" });
    expect(ran).toBe(1);
  });

  test("when the caller's signal has aborted, and gives the attempt back", async () => {
    using place = program();
    const claim = claimed(place.db);
    expect(await deliver(place.db, claim, never, { signal: AbortSignal.abort() })).toEqual({ outcome: "released" });
    expect(get(place.db, 1)).toMatchObject({ status: "pending", attempt: 0, reason_code: "dispatch.pending.released" });
  });
});

describe("deliver() settles what the handler came to", () => {
  test("success", async () => {
    using place = program();
    const claim = claimed(place.db, { body: { n: 1 } });
    let seen: HandlerInput | null = null;
    expect(await deliver(place.db, claim, (input) => void (seen = input))).toEqual({ outcome: "delivered", status: "delivered" });
    expect(seen).toMatchObject({ dispatch: { id: claim.dispatch.id, attempt: 1, payload: expect.stringContaining('"body":{"n":1}') } });
    expect(get(place.db, 1)).toMatchObject({ status: "delivered", attempt: 1, lock_token: null });
    expect(get(place.db, 1)?.reason_summary).toBe("attempt 1: the program that entered it delivered it");
  });

  test("success that waits for its acknowledgement", async () => {
    using place = program();
    const claim = claimed(place.db, { ack_required: true });
    expect(await deliver(place.db, claim, () => {})).toEqual({ outcome: "delivered", status: "pending" });
    expect((get(place.db, 1)?.next_attempt_at ?? 0) - hostClock.now()).toBeGreaterThan(40);
  });

  test("acknowledged while it ran: renewals that find nothing do not abort it", async () => {
    using place = program();
    const claim = claimed(place.db, { ack_required: true });
    const delivery = deliver(place.db, claim, async ({ dispatch, signal }) => {
      expect(ack(place.other, dispatch.id, dispatch.ack_token ?? "")).toBe("acked");
      await hostClock.sleep(400);
      expect(signal.aborted).toBe(false);
    });
    expect(await delivery).toEqual({ outcome: "acked" });
    expect(get(place.db, 1)).toMatchObject({ status: "acked" });
  });

  test.each<[string, () => unknown, string]>([
    ["throws", never, "it ran"],
    ["rejects", () => Promise.reject(new Error("no answer")), "no answer"],
    ["says nothing", () => Promise.reject(new Error("")), "it failed without a word"],
  ])("a handler that %s is a failed attempt, due at once for a runner", async (_, handler, said) => {
    using place = program();
    const result = await deliver(place.db, claimed(place.db), handler);
    expect(result).toMatchObject({ outcome: "failed", status: "pending" });
    const row = get(place.db, 1);
    expect(row).toMatchObject({ status: "pending", attempt: 1, last_error: said, reason_code: "dispatch.pending.retry_backoff" });
    expect(row?.next_attempt_at).toBeLessThanOrEqual(hostClock.now());
  });

  test("a failure at the last attempt is a dead letter", async () => {
    using place = program();
    const problem = new Error("no");
    const result = await deliver(place.db, claimed(place.db, { max_attempts: 1 }), () => Promise.reject(problem));
    expect(result).toEqual({ outcome: "failed", status: "dead_letter", error: problem });
  });

  test("the caller's signal reaches the handler, and ends one that would never end", async () => {
    using place = program();
    const stop = new AbortController();
    const delivery = deliver(place.db, claimed(place.db), ({ signal }) => untilAborted(signal), { signal: stop.signal });
    await hostClock.sleep(0);
    stop.abort(new Error("enough"));
    expect(await delivery).toMatchObject({ outcome: "failed", status: "pending", error: new Error("enough") });
  });

  test("after a lock that another process has for a while", async () => {
    using place = program();
    const { db, other } = place;
    const claim = claimed(db);
    const delivery = deliver(db, claim, () => void other.run("BEGIN IMMEDIATE"));
    await hostClock.sleep(60);
    expect(get(db, 1)).toMatchObject({ status: "delivering" });
    other.run("COMMIT");
    expect(await delivery).toEqual({ outcome: "delivered", status: "delivered" });
  });

  test("after the transaction that the handler left open on the handle, never in it", async () => {
    using place = program();
    const { db } = place;
    const claim = claimed(db);
    const delivery = deliver(db, claim, () => void db.run("BEGIN"));
    await hostClock.sleep(60);
    db.run("ROLLBACK");
    expect(await delivery).toEqual({ outcome: "delivered", status: "delivered" });
    expect(get(db, 1)).toMatchObject({ status: "delivered" });
  });

  test("or throws when the database does not answer until the lease is over", async () => {
    using place = program();
    const { db, other } = place;
    expect(await refused(deliver(db, claimed(db), () => void other.run("BEGIN IMMEDIATE")))).toStartWith("busy: ");
    other.run("COMMIT");
    expect(get(db, 1)).toMatchObject({ status: "delivering" });
  });
});

describe("while the handler runs", () => {
  test("the lease is renewed, so that it outlasts it", async () => {
    using place = program();
    const { db, other } = place;
    const claim = claimed(db);
    const ends = new Set<number>();
    const result = await deliver(db, claim, async () => {
      await until(() => {
        const end = get(other, 1)?.next_attempt_at ?? 0;
        ends.add(end);
        expect(end).toBeGreaterThan(hostClock.now());
        return end > claim.dispatch.next_attempt_at + 0.6;
      });
    });
    expect(result).toEqual({ outcome: "delivered", status: "delivered" });
    expect(ends.size).toBeGreaterThan(4);
  });

  test("a renewal that fails aborts it, and whatever it comes to changes nothing", async () => {
    using place = program();
    const { db, other } = place;
    const claim = claimed(db);
    let aborted: unknown = null;
    const result = await deliver(db, claim, async ({ signal }) => {
      takeOver(other, claim);
      await untilAborted(signal).catch((reason: unknown) => (aborted = reason));
    });
    expect(result).toEqual({ outcome: "lost" });
    await until(() => aborted !== null);
    expect(String(aborted)).toMatch(/the lease of dispatch [0-9a-f]{32} was lost/);
    expect(get(db, 1)).toMatchObject({ status: "delivering", attempt: 2, lock_token: "another token" });
  });

  test("a handler that minds no abort keeps nobody: the program learns at once that the lease is lost", async () => {
    using place = program();
    const claim = claimed(place.db);
    const result: Delivery = await deliver(place.db, claim, () => {
      takeOver(place.other, claim);
      return new Promise(() => {});
    });
    expect(result).toEqual({ outcome: "lost" });
  });

  test("a lease that cannot be renewed until its end is lost", async () => {
    using place = program();
    const { db, other } = place;
    const result = await deliver(db, claimed(db), ({ signal }) => {
      other.run("BEGIN IMMEDIATE");
      return untilAborted(signal);
    });
    expect(result).toEqual({ outcome: "lost" });
    other.run("ROLLBACK");
  });
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}
