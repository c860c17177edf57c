/** Which stories there are: fast-check writes them, and shortens the one that fails. */
import fc from "fast-check";
import type { Act, Deed, Letter, Mishap, Scope, Step, Story } from "./words.ts";

const act: fc.Arbitrary<Act> = fc.record(
  {
    outcome: fc.constantFrom<Act["outcome"][]>(
      "ok",
      "ok",
      "fail",
      "fail",
      "fail",
      "reject",
      "fault",
      "exhausted",
      "hang",
      "stuck",
      "never",
    ),
    ms: fc.constantFrom(0, 40, 900, 1_900),
    retryAfterMs: fc.constantFrom(0, 1_500, 20_000),
    acks: fc.boolean(),
  },
  { requiredKeys: ["outcome", "ms"] },
);

const letter: fc.Arbitrary<Letter> = fc.record(
  {
    kind: fc.constantFrom<Letter["kind"][]>("ping", "ping", "ping", "ping", "strict", "stray"),
    to: fc.constantFrom<Letter["to"][]>("seat", "seat", "desk"),
    max: fc.integer({ min: 1, max: 3 }),
    key: fc.constantFrom<("k" | "l")[]>("k", "k", "l"),
    dedup: fc.constantFrom<("a" | "b")[]>("a", "b"),
    ack: fc.boolean(),
    delayS: fc.constantFrom(1, 8),
    expiresS: fc.constantFrom(-1, 0, 2, 9, 30),
    acts: fc.array(act, { minLength: 1, maxLength: 3 }),
  },
  { requiredKeys: ["kind", "to", "max"] },
);

const mishap = fc.constantFrom<Mishap[]>("none", "busy", "full", "lost", "kept", "kept", "slow");
const who = fc.nat({ max: 5 });
const row = fc.nat({ max: 9 });
const scope: fc.Arbitrary<Scope> = fc.record(
  {
    to: fc.constantFrom<("seat" | "desk")[]>("seat", "desk"),
    kind: fc.constantFrom<("ping" | "strict")[]>("ping", "strict"),
    key: fc.constantFrom<("k" | "l")[]>("k", "l"),
  },
  { requiredKeys: [] },
);

function of<D extends Deed["do"]>(
  weight: number,
  name: D,
  rest: { [K in keyof Omit<Extract<Deed, { do: D }>, "do">]: fc.Arbitrary<unknown> },
) {
  return { weight, arbitrary: fc.record({ do: fc.constant(name), ...rest }) as unknown as fc.Arbitrary<Deed> };
}

const deed: fc.Arbitrary<Deed> = fc.oneof(
  of(10, "enqueue", { letter, mishap: fc.constantFrom<Mishap[]>("none", "none", "none", "busy", "lost", "kept") }),
  of(6, "run", { mode: fc.constantFrom("forever", "forever", "once") }),
  of(2, "now", { letter }),
  of(2, "deliver", { letter, leaseS: fc.constantFrom(1, 7), rollback: fc.boolean() }),
  of(2, "kill", { who }),
  of(3, "crash", { who, crossings: fc.integer({ min: 1, max: 12 }) }),
  of(2, "freeze", { who, ms: fc.constantFrom(500, 8_000, 20_000) }),
  of(1, "stop", { who, twice: fc.boolean() }),
  of(3, "trouble", { who, mishaps: fc.array(mishap, { minLength: 1, maxLength: 5 }) }),
  of(2, "clock", { seconds: fc.constantFrom(-3_600, -10, 3, 6.5, 13, 60, 3_600) }),
  of(2, "ack", { row, right: fc.constantFrom(true, true, true, false) }),
  of(2, "retry", { row, expiresS: fc.constantFrom(null, null, 20) }),
  of(1, "cancel", { row }),
  of(1, "purge", { row, force: fc.boolean() }),
  of(1, "hold", { scope, forS: fc.constantFrom(null, 3, 15) }),
  of(1, "resume", { scope: fc.oneof(scope, fc.constant("all" as const)) }),
  of(1, "break", { kind: fc.constantFrom("ping", "strict"), ms: fc.constantFrom(500, 6_000) }),
);

const step: fc.Arbitrary<Step> = fc.record({ afterMs: fc.constantFrom(0, 0, 3, 50, 300, 1_000, 2_500, 8_000), deed });

export const stories: fc.Arbitrary<Story> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 24, size: "max" }),
  ending: fc.constantFrom<Story["ending"][]>("once", "forever"),
});
