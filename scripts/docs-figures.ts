/** The figures in the documents, from the raw results that are kept beside the tests: what `npm run bench` and `npm run torture` came to. */
import { bound, figure, type Line, verdict } from "./bench/report.ts";
import { table } from "./docs-sections.ts";
import benchmark from "../test/fixtures/bench/results.json" with { type: "json" };
import tortured from "../test/fixtures/torture/results.json" with { type: "json" };

interface Benchmark {
  readonly date: string;
  readonly machine: string;
  readonly bun: string;
  readonly rounds: number;
  readonly lines: readonly (Line & { readonly met: boolean | null })[];
}

interface Torture {
  readonly date: string;
  readonly parts: readonly Readonly<Record<string, string | number>>[];
}

/** Every line that a goal is set for, and what was measured on both sides of it. */
export function performanceTable(): string {
  const { date, machine, bun, rounds, lines } = benchmark as Benchmark;
  const rows = lines.filter(({ met }) => met !== null).map((each) => [each.what, figure(each), bound(each), verdict(each), each.note]);
  const where = `Measured on ${date}: ${machine}, Bun ${bun}; medians of ${rounds} rounds, in each of which every side runs once in a new order.`;
  return `${where}\n\n${table(["what", "is", "goal", "", "both sides"], rows)}`;
}

/** What was done to the program, and what did not hold. */
export function proofTable(): string {
  const { date, parts } = tortured as unknown as Torture;
  const rows = parts.map(({ part, violations, seconds: _, line: __, ...counts }) => [
    `${part}`,
    Object.entries(counts)
      .map(([what, count]) => `${count.toLocaleString("en-US")} ${what}`)
      .join(", "),
    `${violations}`,
  ]);
  return `On ${date}:\n\n${table(["part", "done", "violations"], rows)}`;
}
