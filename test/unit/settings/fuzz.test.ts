/** Settings that nobody would write, read by both readers from a real file: they agree, or differ in what is documented, and never fall over. */
import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { join } from "node:path";
import { OutboxError } from "../../../src/core/errors.ts";
import { CONTROLS } from "../../../src/core/visible.ts";
import { loadSettings } from "../../../src/settings/complain.ts";
import { SettingsError } from "../../../src/settings/problem.ts";
import { readSettings, readStrictly } from "../../../src/settings/read.ts";
import type { Choice, Loaded, Settings } from "../../../src/settings/settings.ts";
import { documents } from "../../fixtures/settings/documents.ts";
import { directory, removeAll, UID, write } from "./scratch.ts";

afterAll(removeAll);

interface Readers {
  readonly quick: (choice: Choice) => Promise<{ readonly settings: Settings }>;
  readonly careful: (choice: Choice) => { readonly settings: Settings };
}
const OURS: Readers = { quick: readSettings, careful: loadSettings };

/** What only the careful reader refuses (README, `settings/read.ts`): all that it says of the file must be of these. */
const CAREFUL_ALONE = [
  / is set twice in one mapping; /,
  / a tag \(.*\) has no meaning here; /,
  / a name that YAML reads as .*; /,
  / a name must be a word; /,
  / << takes in a mapping /,
  / %YAML .* is not understood; /,
  // Of which nothing is in it: one that holds something is refused by both.
  / a second document begins here; /,
  // Bun's parser is lenient about indentation within brackets. What YAML allows must come to the same.
  / not YAML: /,
];
/** No file of this size takes longer, however the machine is loaded. */
const MOST_MS = 5_000;

const file = join(directory(), "settings.yaml");
const choice: Choice = { config: file, env: { HOME: "/home/me" }, uid: UID };

type Answer = { readonly settings: Settings } | { readonly refused: readonly string[] } | { readonly flaw: string };

async function answerOf(read: () => Promise<{ readonly settings: Settings }> | { readonly settings: Settings }): Promise<Answer> {
  const began = performance.now();
  try {
    const { settings } = await read();
    return { settings };
  } catch (error) {
    if (!(error instanceof OutboxError)) return { flaw: `threw ${String(error)}` };
    if (error.kind !== "settings") return { flaw: `answered ${error.kind}: ${error.message}` };
    const refused = error instanceof SettingsError ? error.problems : [error.message];
    const odd = [...refused, error.message].find(
      (line) => line === "" || CONTROLS.test(line) || line.length > 1_000 || !line.startsWith(file),
    );
    return odd === undefined ? { refused } : { flaw: `said ${JSON.stringify(odd)}` };
  } finally {
    expect(performance.now() - began).toBeLessThan(MOST_MS);
  }
}

/** What is wrong with how this text is read; null when nothing is. */
async function flaw(text: string, { quick, careful }: Readers): Promise<string | null> {
  write(file, text);
  const [fast, close] = [await answerOf(() => quick(choice)), await answerOf(() => careful(choice))];
  if ("flaw" in fast) return `the quick one ${fast.flaw}`;
  if ("flaw" in close) return `the careful one ${close.flaw}`;
  if ("refused" in fast) return "refused" in close ? null : "only the quick one refuses it";
  if ("settings" in close) return Bun.deepEquals(fast.settings, close.settings) ? null : "they read different settings";
  const undocumented = close.refused.filter((line) => !CAREFUL_ALONE.some((pattern) => pattern.test(line)));
  return undocumented.length === 0 ? null : `only the careful one says ${undocumented.join("\n")}`;
}

test("the two readers agree on what they take, but for what is documented, and throw nothing else", async () => {
  const came = { taken: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(documents, async (text) => {
      expect(await flaw(text, OURS)).toBeNull();
      came["settings" in (await answerOf(() => loadSettings(choice))) ? "taken" : "refused"] += 1;
    }),
    { numRuns: 800, interruptAfterTimeLimit: 4_000 },
  );
  // Files of both sorts were among them.
  expect(Math.min(came.taken, came.refused)).toBeGreaterThan(20);
});

test("a reader that may spare itself the second parser answers as the careful one does: the same settings, the same words", async () => {
  const answers = async (read: () => Promise<Loaded> | Loaded): Promise<unknown> => {
    try {
      const { settings, file: name, origin } = await read();
      return { settings, name, origin };
    } catch (error) {
      return error instanceof OutboxError ? [error.name, error.kind, error.message, error.hint] : error;
    }
  };
  await fc.assert(
    fc.asyncProperty(documents, async (text) => {
      write(file, text);
      expect(await answers(() => readStrictly(choice))).toEqual(await answers(() => loadSettings(choice)));
    }),
    { numRuns: 800, interruptAfterTimeLimit: 4_000 },
  );
});

test.each([
  [
    "takes what it cannot read for nothing",
    { ...OURS, quick: (asked) => readSettings(asked).catch(() => readSettings({ ...asked, config: "/dev/null" })) },
  ],
  ["falls over an alias", { ...OURS, careful: (asked) => (Bun.file(asked.config ?? "").size > 30 ? fallOver() : loadSettings(asked)) }],
  [
    "reads another number",
    {
      ...OURS,
      quick: async (asked) => {
        const { settings } = await readSettings(asked);
        const { intervalMs } = settings.run;
        return { settings: { ...settings, run: { ...settings.run, intervalMs: intervalMs === 30_000 ? intervalMs : intervalMs + 1 } } };
      },
    },
  ],
] as const satisfies readonly (readonly [string, Readers])[])("a reader that %s is found out", async (_, broken: Readers) => {
  expect(
    (
      await fc.check(
        fc.asyncProperty(documents, async (text) => (await flaw(text, broken)) === null),
        { numRuns: 3_000 },
      )
    ).failed,
  ).toBeTrue();
});

function fallOver(): never {
  throw new TypeError("undefined is not an object");
}
