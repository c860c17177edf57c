/** Plays many stories and finds the shortest that goes wrong. The same seed plays the same stories. */
import fc from "fast-check";
import type { Production } from "../production.ts";
import { aloud } from "./aloud.ts";
import { empty, newDatabase } from "./database.ts";
import { play } from "./play.ts";
import { stories } from "./stories.ts";
import type { Story } from "./words.ts";

export interface Worlds {
  /** How many stories were played until one went wrong, or all did well. */
  readonly played: number;
  /** Null: in none of them went anything wrong. */
  readonly failure: Failure | null;
}

export interface Failure {
  readonly story: Story;
  /** Which of the seed's stories it is. */
  readonly path: string;
  /** What the judge found, with its moment. */
  readonly found: string;
  /** Story and finding, to be read. */
  readonly text: string;
}

export interface WorldsTerms {
  readonly count: number;
  readonly seed: number;
  /** Which of the seed's stories comes first, as `Failure` names it; the first unless given. */
  readonly from?: string;
  /** Whether a story that goes wrong is made as short as can be. */
  readonly shorten: boolean;
}

export async function worlds(production: Production, { count, seed, from, shorten }: WorldsTerms): Promise<Worlds> {
  const one = player(production);
  let played = 0;
  const property = fc.asyncProperty(stories, (story) => {
    played += 1;
    return one(story);
  });
  const result = await fc.check(property, { numRuns: count, seed, endOnFailure: !shorten, ...(from === undefined ? {} : { path: from }) });
  const [story] = result.counterexample ?? [];
  if (!result.failed || story === undefined) return { played: result.numRuns, failure: null };
  const found = result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance);
  return {
    played: Math.min(played, result.numRuns),
    failure: { story, path: result.counterexamplePath ?? "", found, text: `${aloud(story)}\nand then, at ${found}` },
  };
}

/** Plays stories one after the other on a database that is emptied in between, or made anew after one that went wrong. */
export function player(production: Production): (story: Story) => Promise<void> {
  let db = newDatabase(production);
  return async (story) => {
    let well = false;
    try {
      await play(db, production, story);
      empty(db);
      well = true;
    } finally {
      if (!well) db = newDatabase(production);
    }
  };
}
