/** Whole worlds: runners, senders, programs, operators and consumers on one database, and whatever can go wrong between them. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { production } from "./production.ts";
import { aloud } from "./story/aloud.ts";
import { newDatabase } from "./story/database.ts";
import { KEPT } from "./story/kept.ts";
import { play } from "./story/play.ts";
import { stories } from "./story/stories.ts";
import type { Story } from "./story/words.ts";
import { player, worlds } from "./story/worlds.ts";

setDefaultTimeout(120_000);

const code = await production();

test("in 300 worlds nothing is lost, sent too often, out of turn or unaccounted for, and all comes to rest", async () => {
  const { failure } = await worlds(code, { count: 300, seed: 20_261_129, shorten: true });
  expect(failure?.text ?? null).toBeNull();
});

test("the same story plays the same way, to the last move", async () => {
  const some = fc.sample(stories, { numRuns: 6, seed: 7 });
  const [one, other] = await Promise.all([journals(some), journals(some)]);
  expect(one.join().length).toBeGreaterThan(10_000);
  expect(other).toEqual(one);
});

async function journals(some: readonly Story[]): Promise<string[]> {
  const told: string[] = [];
  for (const story of some) told.push(await journal(story));
  return told;
}

/** All that was seen of the tables. */
async function journal(story: Story): Promise<string> {
  const db = newDatabase(code);
  await play(db, code, story);
  return JSON.stringify(db.query("SELECT * FROM sim_seen ORDER BY n").all());
}

describe("stories that once went wrong", () => {
  const one = player(code);
  test.each(Object.entries(KEPT))("%s", async (_, story) => {
    await one(story);
  });
});

test("a story is told in sentences", () => {
  const [story] = fc.sample(stories, { numRuns: 1, seed: 3 });
  expect(story === undefined ? "" : aloud(story)).toMatch(/^ +first {2}\d runners\n +\d+\.\d{3} s {2}[a-z]/);
});
