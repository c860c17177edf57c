/** A forecast and the drain that follows it: the same rows, whatever is in whose way. Nothing is written before. */
import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Dispatch } from "../../src/core/dispatch.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { exchange, type Exchange } from "../../src/store/exchange.ts";
import { forecast, type ForecastPage, type Memory } from "../../src/store/forecast.ts";
import { hold, noteFailure } from "../../src/store/gates.ts";
import { createStore } from "../../src/store/store.ts";
import { countedEntropy, enter, handClock, memory, POLICY, T0, take } from "../fixtures/world.ts";

const NOW = T0 + 100;
const REPORT = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };
const OK: Outcome = { kind: "ok", report: REPORT };
const FAILED: Outcome = { kind: "failed", report: { ...REPORT, exit: 1 }, error: "exit 1", retryAfterMs: null };
/** What a runner would bring: one kind is at a fault, the commands of another are known to fail. */
const KINDS = new Map<string, number | null>([
  ["stopped", null],
  ["failing", 15],
]);
const PROBED = ["seat-3", "seat-4"];
const isAlive = (holder: string): boolean => holder === "alive 1 1";

interface Wanted {
  readonly kind: string;
  readonly to: number;
  readonly key: number | null;
  readonly ack: boolean;
  readonly attempts: number;
  readonly fate: "fresh" | "later" | "expires" | "spent" | "stale" | "slow" | "live";
}

const wanted: fc.Arbitrary<Wanted> = fc.record({
  kind: fc.constantFrom("plain", "plain", "plain", "stopped", "failing"),
  to: fc.nat(5),
  key: fc.option(fc.nat(2)),
  ack: fc.nat(5).map((n) => n === 0),
  attempts: fc.integer({ min: 1, max: 3 }),
  fate: fc.constantFrom("fresh", "fresh", "fresh", "later", "expires", "spent", "stale", "slow", "live"),
});

/** The rows as they are wanted, by hand where a runner would have taken long. Seat 3 and 4 have circuits past their cooldown, seat 5 an open one. */
function build(rows: readonly Wanted[], holds: readonly number[]): Database {
  const db = memory();
  for (const [at, { kind, to, key, ack, attempts, fate }] of rows.entries()) {
    const { seq } = enter(db, {
      kind,
      deliver_to: `seat-${to}`,
      ordering_key: key === null ? null : `key-${key}`,
      ack_required: ack,
      // What follows a probe is left open by a forecast: here it fails and has attempts left.
      max_attempts: fate === "spent" ? 1 : PROBED.includes(`seat-${to}`) ? 9 : attempts,
      expires_at: fate === "expires" ? NOW - 5 : null,
      not_before: fate === "later" ? NOW + 60 : T0 + (at % 7),
    });
    const lease = { spent: NOW - 20, stale: NOW - 30, slow: NOW - 3, live: NOW + 5 }[fate as "spent"];
    if (lease === undefined) continue;
    db.run(
      `UPDATE dispatch_outbox SET status = 'delivering', attempt = 1, lock_token = 'x' || seq, holder = ?, next_attempt_at = ?, updated_at = ${T0},
         reason_code = 'dispatch.delivering.attempt' WHERE seq = ?`,
      [fate === "slow" ? "alive 1 1" : "gone 1 1", lease, seq],
    );
  }
  for (const to of PROBED) noteFailure(db, to, { failures: 1, cooldownS: 10 }, T0);
  noteFailure(db, "seat-5", { failures: 1, cooldownS: 500 }, T0);
  for (const to of holds)
    hold(
      db,
      { deliverTo: `seat-${to}`, kind: null, orderingKey: null },
      { now: T0, actor: "a", note: null, endsAt: to === 2 ? NOW - 1 : null },
    );
  return db;
}

async function foreseen(db: Database): Promise<{ readonly rows: ForecastPage["rows"]; readonly kept: number }> {
  const store = createStore(db, ":memory:", { clock: handClock(NOW), entropy: countedEntropy() });
  const others = { othersFail: false, othersUnresolvable: false };
  const forecast = store.forecast({ fallbackLeaseS: 15, kinds: KINDS, circuits: true, failing: new Set(["failing"]), ...others, isAlive });
  const pages: ForecastPage[] = [];
  for (let page = await forecast.next(); page !== null; page = await forecast.next()) pages.push(page);
  const sum = (of: (page: ForecastPage) => number): number => pages.reduce((total, page) => total + of(page), 0);
  const faults = sum(({ kept }) => [...kept.fault.values()].reduce((total, each) => total + each, 0));
  return {
    rows: pages.flatMap(({ rows }) => rows),
    kept: faults + sum(({ kept }) => kept.held + kept.behind + kept.circuit + kept.running),
  };
}

/** Drains as `run --once` does: commands succeed, but for those that are known to fail and those that try a circuit. */
function drained(db: Database): Map<number, string> {
  const moved = new Map<number, string>();
  const left = new Set<number>();
  const seams = { clock: handClock(NOW), entropy: countedEntropy() };
  let settle: Exchange["settle"] = [];
  for (;;) {
    const inHand = [...left];
    const { taken } = exchange(
      db,
      {
        holder: "desk 1 1",
        circuit: { failures: 1_000, cooldownS: 60 },
        settle,
        renew: [],
        claim: { dueBy: NOW, atMost: 3, fallbackLeaseS: 15, kinds: KINDS, perDestination: 99, inHand, isAlive },
      },
      seams,
    );
    if (taken.length === 0 && settle.length === 0) return moved;
    const fails = (row: Dispatch): boolean => row.kind === "failing" || PROBED.includes(row.deliver_to);
    settle = taken
      .filter(({ status }) => status === "delivering")
      .map((claim) => ({ claim, outcome: fails(claim) ? FAILED : OK, policy: POLICY }));
    for (const { seq, status } of taken) {
      moved.set(seq, status === "delivering" ? "send" : status === "expired" ? "expire" : "die");
      left.add(seq);
    }
  }
}

describe("a forecast", () => {
  test("is what a drain then does, for any crowd, and writes nothing", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(wanted, { maxLength: 24 }), fc.subarray([0, 1, 2]), async (rows, holds) => {
        const db = build(rows, holds);
        const before = db.serialize();
        const { rows: told, kept } = await foreseen(db);
        expect(db.serialize()).toEqual(before);
        const due = db
          .query<{ n: number }, []>(`SELECT count(*) AS n FROM dispatch_outbox WHERE next_attempt_at <= ${NOW} OR status = 'delivering'`)
          .get()?.n;
        expect(told.length + kept).toBe(due ?? 0);
        const sorted = (moves: Iterable<readonly [number, string]>): unknown => [...moves].toSorted(([one], [other]) => one - other);
        expect(sorted(told.map(({ seq, would }) => [seq, would] as const))).toEqual(sorted(drained(db)));
      }),
      { numRuns: 150 },
    );
  }, 60_000);

  test("comes in the order of due times, page after page, also where many are due at one instant", async () => {
    const db = memory();
    db.transaction(() => {
      for (let n = 0; n < 1_300; n++) enter(db, { not_before: T0 + (n % 2) });
    })();
    const { rows } = await foreseen(db);
    const order = rows.map(({ next_attempt_at, seq }) => next_attempt_at * 10_000 + seq);
    expect(new Set(order).size).toBe(1_300);
    expect(order).toEqual(order.toSorted((one, other) => one - other));
  });

  test("reads what is due once for all circuits that may be tried, not once for each", () => {
    const db = memory();
    for (let n = 0; n < 40; n++) enter(db, { deliver_to: `seat-${n % 20}`, ordering_key: n % 3 === 0 ? `key-${n % 5}` : null });
    for (let n = 0; n < 20; n++) noteFailure(db, `seat-${n}`, { failures: 1, cooldownS: 10 }, T0);
    const seen: Memory = { barriers: new Map(), probes: null };
    const terms = { now: NOW, fallbackLeaseS: 15, kinds: new Map(), circuits: true, alive: [] };
    forecast(db, { ...terms, failing: new Set(), othersFail: false, othersUnresolvable: false }, null, 1, seen);
    expect(seen.probes?.size).toBe(20);
  });

  test("says the reason that an end would have", async () => {
    const db = memory();
    enter(db, { expires_at: NOW - 1 });
    enter(db, { max_attempts: 1 });
    take(db, NOW - 50);
    take(db, NOW - 49);
    expect((await foreseen(db)).rows.map(({ would, reason_code }) => [would, reason_code])).toEqual([
      ["expire", "dispatch.expired.deadline"],
      ["die", "dispatch.dead_letter.max_attempts"],
    ]);
  });
});
