import { expect, test } from "bun:test";
import { sum, tally } from "../../../scripts/tally.ts";

const files = ["test/a.test.ts"];

function report(tests: number, failures: number, skipped: number, of = files): string {
  const suites = of.map((file) => `  <testsuite name="${file}" file="${file}" tests="9" failures="9">`);
  return `<?xml version="1.0"?>\n<testsuites name="bun test" tests="${tests}" failures="${failures}" skipped="${skipped}">\n${suites.join("\n")}`;
}

test.each([
  ["all tests passed", { exitCode: 0, report: report(5, 0, 0), files }, { passed: 5, failed: 0 }],
  ["some failed", { exitCode: 1, report: report(5, 2, 0), files }, { passed: 3, failed: 2 }],
  ["a skipped test has not passed", { exitCode: 0, report: report(5, 0, 2), files }, { passed: 3, failed: 0 }],
  ["nothing but skipped tests is a failure", { exitCode: 0, report: report(2, 0, 2), files }, { passed: 0, failed: 1 }],
  ["no test at all is a failure", { exitCode: 0, report: report(0, 0, 0, []), files: [] }, { passed: 0, failed: 1 }],
  ["a run without a report is a failure", { exitCode: 0, report: null, files }, { passed: 0, failed: 1 }],
  ["an empty report is a failure", { exitCode: 0, report: "", files: [] }, { passed: 0, failed: 1 }],
  ["a bad end after good tests is a failure", { exitCode: 3, report: report(5, 0, 0), files }, { passed: 5, failed: 1 }],
  ["a file that did not load is a failure", { exitCode: 1, report: report(5, 0, 0), files: [...files, "b"] }, { passed: 5, failed: 1 }],
] as const)("tally() knows: %s", (_, run, expected) => {
  expect(tally(run)).toEqual(expected);
});

test("sum() adds passed to passed and failed to failed", () => {
  expect(sum([tally({ exitCode: 1, report: report(5, 2, 0), files }), { passed: 1, failed: 1 }])).toEqual({ passed: 4, failed: 3 });
  expect(sum([])).toEqual({ passed: 0, failed: 0 });
});
