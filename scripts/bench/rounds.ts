/** Both sides of a ratio in the same minute: rounds in which every side runs once, in a new order each time. */

/** A command whose cost is measured. */
export interface Side {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface Cost {
  /** From the start to the end as a caller sees it. */
  readonly wallMs: readonly number[];
  /** User and system time of the process, which a busy machine disturbs less. */
  readonly cpuMs: readonly number[];
}

/** @throws Error when one of them fails: what fails quickly is not fast */
export function rounds(sides: readonly Side[], count: number): readonly Cost[] {
  const costs = sides.map(() => ({ wallMs: [] as number[], cpuMs: [] as number[] }));
  for (let round = 0; round < count; round += 1)
    for (const at of shuffled(sides.map((_, index) => index))) {
      const [side, cost] = [sides[at], costs[at]];
      if (side === undefined || cost === undefined) continue;
      const started = performance.now();
      const done = Bun.spawnSync([...side.argv], { env: side.env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
      cost.wallMs.push(performance.now() - started);
      if (done.exitCode !== 0) throw new Error(`${side.name} ended with ${done.exitCode}: ${done.stderr.toString()}`);
      cost.cpuMs.push(Number(done.resourceUsage.cpuTime.total) / 1_000);
    }
  return costs;
}

/** The median of the ratios round by round: a slow minute slows both sides of its rounds. */
export function ratio(one: readonly number[], other: readonly number[]): { readonly median: number; readonly spread: string } {
  const each = one.map((value, at) => value / (other[at] ?? Number.NaN));
  return { median: quantile(each, 0.5), spread: `${quantile(each, 0.1).toFixed(2)}-${quantile(each, 0.9).toFixed(2)}` };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function shuffled<T>(items: readonly T[]): T[] {
  const rest = [...items];
  const order: T[] = [];
  while (rest.length > 0) order.push(...rest.splice(Math.floor(Math.random() * rest.length), 1));
  return order;
}
