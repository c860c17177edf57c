/** How many tests of one `bun test` run passed and failed. Pure; `check.ts` adds them up. */

export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/** What a run left behind. */
export interface TestRun {
  readonly exitCode: number;
  /** Its JUnit report; null when it wrote none, for example because a test ended the process. */
  readonly report: string | null;
  /** The test files that it was to run, as the report names them: relative to the root. */
  readonly files: readonly string[];
}

/**
 * Counts from the report and trusts it only upwards: it leaves out a file that did not load, so every file without an entry
 * is a failure, and so are a run that ended badly without a failed test and one without any test.
 */
export function tally({ exitCode, report, files }: TestRun): Tally {
  const head = /<testsuites\b[^>]*>/.exec(report ?? "")?.[0];
  if (report === null || head === undefined) return { passed: 0, failed: Math.max(1, files.length) };
  const count = (name: string): number => Number(new RegExp(`\\s${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
  const passed = count("tests") - count("failures") - count("skipped");
  const failed = count("failures") + files.filter((file) => !report.includes(` file="${file}"`)).length;
  const silent = failed === 0 && (exitCode !== 0 || passed === 0);
  return { passed, failed: silent ? 1 : failed };
}

export function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce((a, b) => ({ passed: a.passed + b.passed, failed: a.failed + b.failed }), { passed: 0, failed: 0 });
}
