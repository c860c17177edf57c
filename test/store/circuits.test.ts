import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Dispatch } from "../../src/core/dispatch.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { breaches } from "../../src/store/invariants.ts";
import { createStore, type Exchange, type Store } from "../../src/store/store.ts";
import { count, countedEntropy, enter, handClock, memory, POLICY, T0 } from "../fixtures/world.ts";

const REPORT = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
const OK: Outcome = { kind: "ok", report: REPORT };
const FAILED: Outcome = { kind: "failed", report: { ...REPORT, exit: 1 }, error: "exit 1", retryAfterMs: 1 };
const CIRCUIT = { failures: 3, cooldownS: 60 };

interface World {
  readonly db: Database;
  readonly clock: ReturnType<typeof handClock>;
  readonly store: Store;
  readonly exchange: (terms?: Partial<Exchange>, atMost?: number) => ReturnType<Store["exchange"]>;
  /** Claims and settles `times` times. @returns what each did to the circuit */
  readonly attempts: (outcome: Outcome, times: number) => Promise<(string | null)[]>;
  readonly claim: (atMost?: number) => Promise<readonly Dispatch[]>;
}

function world(rows = 50): World {
  const db = memory();
  const clock = handClock();
  const store = createStore(db, "memory", { clock, entropy: countedEntropy() });
  for (let n = 0; n < rows; n++) enter(db, { max_attempts: 50 });
  const exchange: World["exchange"] = (terms = {}, atMost = 64) =>
    store.exchange({
      holder: "desk 1 1",
      circuit: CIRCUIT,
      settle: [],
      renew: [],
      claim: { dueBy: null, atMost, fallbackLeaseS: 15, kinds: new Map(), perDestination: 4, inHand: [], isAlive: () => false },
      ...terms,
    });
  const claim: World["claim"] = async (atMost = 64) => (await exchange({}, atMost)).taken;
  return {
    db,
    clock,
    store,
    exchange,
    claim,
    async attempts(outcome, times) {
      const seen: (string | null)[] = [];
      for (let n = 0; n < times; n++) {
        const [one] = await claim(1);
        if (one === undefined) throw new Error("nothing to claim");
        const { settled } = await exchange({ settle: [{ claim: one, outcome, policy: POLICY }], claim: null });
        seen.push(settled[0]?.circuit ?? null);
      }
      return seen;
    },
  };
}
const settleAll = (claims: readonly Dispatch[], outcome: Outcome): Partial<Exchange> => ({
  settle: claims.map((claim) => ({ claim, outcome, policy: POLICY })),
  claim: null,
});

describe("a circuit", () => {
  test("opens after so many failures in a row, and nothing is claimed or spent until its cooldown is over", async () => {
    const { attempts, claim, clock, store, db } = world();
    expect(await attempts(FAILED, 3)).toEqual([null, null, "opened"]);
    expect(await store.circuits()).toEqual([{ deliver_to: "seat-1", failures: 3, failed_at: T0, opened_at: T0, open_until: T0 + 60 }]);
    expect((await store.figures()).open_circuits).toBe(1);
    const before = count(db, "status_transitions");
    clock.pass(59.999);
    expect(await claim()).toEqual([]);
    expect(count(db, "status_transitions")).toBe(before);
    expect(await store.nextMoment()).toBe(T0 + 60);
    clock.pass(0.001);
    expect(await claim()).toHaveLength(1);
  });

  test("counts failures in a row: a success between them begins anew", async () => {
    const { attempts } = world();
    expect(await attempts(FAILED, 2)).toEqual([null, null]);
    expect(await attempts(OK, 1)).toEqual([null]);
    expect(await attempts(FAILED, 3)).toEqual([null, null, "opened"]);
  });

  test("leaves other destinations alone", async () => {
    const { attempts, claim, db } = world();
    await attempts(FAILED, 3);
    enter(db, { deliver_to: "seat-2" });
    expect((await claim()).map((one) => one.deliver_to)).toEqual(["seat-2"]);
  });

  test("has room for exactly one probe after its cooldown, over all runners and batches", async () => {
    const { attempts, claim, clock } = world();
    await attempts(FAILED, 3);
    clock.pass(60);
    const claims = await Promise.all([claim(), claim(), claim(), claim()]);
    expect(claims.map((taken) => taken.length)).toEqual([1, 0, 0, 0]);
  });

  test("needs no flag: a probe whose runner was killed is a lease that ran out, and then there is one more", async () => {
    const { attempts, claim, clock } = world();
    await attempts(FAILED, 3);
    clock.pass(60);
    expect(await claim()).toHaveLength(1);
    clock.pass(14.999);
    expect(await claim()).toHaveLength(0);
    clock.pass(0.001);
    expect([(await claim()).length, (await claim()).length]).toEqual([1, 0]);
  });

  test("begins a new cooldown when the probe fails", async () => {
    const { attempts, claim, clock } = world();
    await attempts(FAILED, 3);
    clock.pass(61);
    expect(await attempts(FAILED, 1)).toEqual(["still open"]);
    clock.pass(59);
    expect(await claim()).toEqual([]);
    clock.pass(1);
    expect(await claim()).toHaveLength(1);
  });

  test("is closed by any success, also by one that began before it opened", async () => {
    const { claim, exchange, store, clock } = world();
    const claims = await claim(4);
    const { settled } = await exchange(settleAll(claims.slice(0, 3), FAILED));
    expect(settled.map((one) => one.circuit)).toEqual([null, null, "opened"]);
    expect((await exchange(settleAll(claims.slice(3), OK))).settled.map((one) => one.circuit)).toEqual(["closed"]);
    expect(await store.circuits()).toEqual([]);
    clock.pass(1);
    expect(await claim()).toHaveLength(4);
  });

  test("is closed by a success that the consumer acknowledged before it was settled", async () => {
    const { attempts, claim, clock, exchange, store, db } = world(0);
    const acked = enter(db, { ack_required: true });
    const [first] = await claim(1);
    for (let n = 0; n < 5; n++) enter(db);
    await attempts(FAILED, 3);
    expect(await store.ack({ id: acked.id }, acked.ack_token ?? "")).toBe("acked");
    clock.pass(1);
    const { settled } = await exchange(settleAll(first === undefined ? [] : [first], OK));
    expect(settled).toMatchObject([{ result: "acked", circuit: "closed" }]);
  });

  test("keeps its cooldown when another that began earlier fails meanwhile", async () => {
    const { claim, clock, exchange, store } = world();
    const claims = await claim(4);
    await exchange(settleAll(claims.slice(0, 3), FAILED));
    clock.pass(10);
    expect((await exchange(settleAll(claims.slice(3), FAILED))).settled.map((one) => one.circuit)).toEqual(["still open"]);
    expect(await store.circuits()).toMatchObject([{ failures: 4, open_until: T0 + 60 }]);
  });

  test.each<Outcome>([
    { kind: "rejected", report: REPORT, error: "never" },
    { kind: "fault", error: "no such command" },
    { kind: "released", error: "shut down", exhausted: false },
    { kind: "unresolvable", error: "no route" },
  ])("does not count what is $kind", async (outcome) => {
    const { attempts, clock, store } = world();
    await attempts(FAILED, 2);
    expect(await attempts(outcome, 1)).toEqual([null]);
    clock.pass(100);
    expect(await attempts(outcome, 1)).toEqual([null]);
    expect(await store.circuits()).toEqual([]);
    expect(await attempts(FAILED, 1)).toEqual(["opened"]);
  });

  test("does not count runners that vanished, nor what one that lost its token says", async () => {
    const { claim, clock, exchange, store, db } = world(4);
    const late = await claim(4);
    for (let n = 0; n < 5; n++) {
      clock.pass(15);
      await claim(4);
    }
    expect((await exchange(settleAll(late, FAILED))).settled.map((one) => `${one.result} ${one.circuit}`)).toEqual(
      Array(4).fill("lost null"),
    );
    expect((await exchange(settleAll(late, OK))).settled.map((one) => one.circuit)).toEqual(Array(4).fill(null));
    expect(await store.circuits()).toEqual([]);
    expect(db.query("SELECT failures FROM dispatch_destinations").values()).toEqual([[0]]);
  });

  test("keeps no row from expiring", async () => {
    const { attempts, claim, clock, db } = world(3);
    enter(db, { expires_at: T0 + 5 });
    await attempts(FAILED, 3);
    clock.pass(5);
    expect(await claim()).toMatchObject([{ seq: 4, status: "expired" }]);
    expect(breaches(db, T0 + 5)).toEqual([]);
  });

  test("is turned off by 0: none opens, and those that are open close", async () => {
    const { attempts, exchange, store } = world();
    await attempts(FAILED, 3);
    const { taken } = await exchange({ circuit: { failures: 0, cooldownS: 60 } });
    expect(taken).toHaveLength(4);
    expect(
      (await exchange({ ...settleAll(taken, FAILED), circuit: { failures: 0, cooldownS: 60 } })).settled.map((one) => one.circuit),
    ).toEqual(Array(4).fill(null));
    expect(await store.circuits()).toEqual([]);
  });

  test("opens at the first failure where one is enough", async () => {
    const { exchange, claim } = world();
    const [one] = await claim(1);
    const terms = { ...settleAll(one === undefined ? [] : [one], FAILED), circuit: { failures: 1, cooldownS: 60 } };
    expect((await exchange(terms)).settled[0]?.circuit).toBe("opened");
  });
});
