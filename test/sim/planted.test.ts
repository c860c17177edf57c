/** A test of the simulation: each of these faults is planted in a copy of the sources, and must be found. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { production } from "./production.ts";
import { FAULTS, SEED } from "./story/faults.ts";
import { plant } from "./story/plant.ts";
import { worlds } from "./story/worlds.ts";

setDefaultTimeout(120_000);

/** A fault that is not found in so many worlds is not found. The story named beside it comes first. */
const WORLDS = 400;

describe("the simulation finds that", () => {
  test.each(FAULTS)("$name", async ({ edits, story }) => {
    using copy = plant(edits);
    const { failure } = await worlds(await production(copy.src), { count: WORLDS, seed: SEED, from: story, shorten: false });
    expect(failure?.found ?? "nothing went wrong").toMatch(/^\d+\.\d{3} s: /);
  });
});

test("the same stories go well with a copy in which nothing was changed", async () => {
  using copy = plant([]);
  const code = await production(copy.src);
  for (const from of new Set(FAULTS.map(({ story }) => story))) {
    const { failure } = await worlds(code, { count: 1, seed: SEED, from, shorten: false });
    expect(failure?.text ?? null).toBeNull();
  }
});

test("a fault whose text is not in the sources any more is told", () => {
  expect(() => plant([["store/claim.ts", "no such text", ""]])).toThrow("store/claim.ts has this 0 times, not once: no such text");
});

test("README says how many there are", async () => {
  expect(await Bun.file(join(import.meta.dir, "../../README.md")).text()).toContain(`In ${FAULTS.length} copies a fault is\nplanted`);
});
