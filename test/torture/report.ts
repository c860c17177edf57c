/** What a part of the torture came to: its figures, and everything that did not hold. */

export interface Part {
  readonly name: string;
  /** What was done, by name: `kill points`, `images`. The first is the one that the README quotes. */
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
  readonly seconds: number;
}

/** `crash: 1204 kill points, 500 random kills, 0 violations (213 s)` */
export function lineOf({ name, counts, violations, seconds }: Part): string {
  const done = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  return `${name}: ${[...done, `${violations.length} violations`].join(", ")} (${Math.round(seconds)} s)`;
}

/** Most violations that are shown of one part; one fault shows itself at every point. */
const SHOWN = 20;

export function show(part: Part): void {
  console.log(lineOf(part));
  for (const violation of part.violations.slice(0, SHOWN)) console.log(`  ${violation}`);
  if (part.violations.length > SHOWN) console.log(`  and ${part.violations.length - SHOWN} more`);
}

/** Measures a part. What it throws is a violation too: a part that cannot be done has proved nothing. */
export async function part(name: string, work: () => Promise<Omit<Part, "name" | "seconds">>): Promise<Part> {
  const started = performance.now();
  const done = await work().catch((error: unknown) => ({
    counts: {},
    violations: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  }));
  return { name, ...done, seconds: (performance.now() - started) / 1_000 };
}

/** Works a list off, so many at a time. After a failure nothing more is begun. */
export async function together<Item>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const hand = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
      await work(item).catch((error: unknown) => {
        waiting.length = 0;
        throw error;
      });
  };
  await Promise.all(Array.from({ length: atOnce }, hand));
}

/** Longest that one case may take, over all its processes. */
const CASE_LIMIT_MS = 300_000;

/** What it comes to, or that it came to nothing: a case that is forgotten must not look like one that passed. */
export async function inTime(work: Promise<string[]>): Promise<string[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<string[]>((resolve) => {
    timer = setTimeout(() => resolve([`no end after ${CASE_LIMIT_MS / 1_000} s`]), CASE_LIMIT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    clearTimeout(timer);
  }
}

/** Uniform numbers in [0, 1) from a seed, so that a bad run can be had again. */
export function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
