import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Document } from "yaml";
import { PLACEHOLDERS } from "../../../src/core/template.ts";
import { isSimple } from "../../../src/settings/simple.ts";
import { careful, problems, quick } from "./scratch.ts";

/** Files in which YAML has room to differ. Both parsers must read the same settings. */
const FINE: readonly string[] = [
  "",
  "# nothing\n",
  "---\n",
  "---\nrun: { interval: 5s }\n...\n",
  "\ufeffrun: { interval: 5s }",
  "run:\r\n  interval: 5s\r\nlog:\r\n  level: warn\r\n",
  "run:\n  interval: 5s # why\n\n\n# end",
  'dispatch:\r\n  notify_template: [a, "x\r\n    y", \'x\r\n    y\', "x\\\r\n    y"]\r\n',
  "run: {interval: 5s,}",
  "{run: {interval: 5s}}",
  "run: null\nlog: ~\ndispatch:\nretention: {}\nlimits:\n",
  "? run\n: interval: 5s",
  '"run": { "interval": "5s" }',
  "run: { 'interval':5s }",
  "dispatch: { concurrency: 010 }",
  "dispatch: { concurrency: 0o10 }",
  "dispatch: { concurrency: 0x10 }",
  "dispatch: { concurrency: +5 }",
  "dispatch: { concurrency: 5.0 }",
  "dispatch: { concurrency: 5. }",
  "dispatch: { concurrency: 1e2 }",
  "dispatch: { backoff: { jitter: .5, base: 0, max: 0 } }",
  "limits: { payload: 4096, output: 0 }",
  "limits: { payload: '1.5 KiB' }",
  "dispatch: { notify_template: [no, on, yes, 'null', 2026-01-01, 10:30, 1_000, 30s, 1.2.3, 0b1, 08x, -x, --] }",
  "dispatch: { notify_template: [a, '', ' ', ' b ', 'it''s', \"\\x41\\u0042\\t\\\"\", a#b, a:b, ?x] }",
  "dispatch:\n  notify_template:\n  - a\n  - >\n    folded\n    text\n  - |-\n    kept\n    lines\n  - plain\n    on two lines\n  - 'quoted\n    on two'",
  "dispatch:\n  notify_template: [a, '{payload}', '{}', '{\"a\":1}', '{a b}', 'x{y}z', '--', '$HOME', '`x`', '*']",
  "dispatch:\n  notify_template: &t [a, b]\n  routes:\n    x: { notify_template: *t }",
  "dispatch:\n  routes:\n    x: &x { timeout: 3s, env: { A: b } }\n    y: { <<: *x, timeout: 4s }\n    z: { timeout: 5s, <<: [*x, { max_attempts: 3 }] }",
  "dispatch:\n  routes:\n    constructor: { timeout: 3s }\n    __proto__: { timeout: 4s }\n    hasOwnProperty: {}\n    404: {}\n    true: {}",
  "dispatch:\n  env: { __proto__: x, constructor: y, A: '', yes: 'no' }",
  "dispatch: { retry_for: 3d }",
  "database: yes",
  "database: ~/x/../y.db\nsources: { a: b.db, c: ./d/e.db, f: /g//h.db }",
];

/** Files that Bun's parser reads and `yaml` refuses: with `enqueue` and `revive` they pass, with all else they are errors. */
const BUN_ALONE: readonly (readonly [string, string])[] = [
  ["repeated names", "run: { interval: 5s, interval: 6s }"],
  ["a name that is nothing", "dispatch: { routes: { ~: {} } }"],
  ["a number as a name that loses its form", "dispatch: { routes: { 1.10: {} } }"],
  ["a list as a name", "dispatch: { routes: { [a]: {} } }"],
  ["a tab where a block text begins", "database: |\t-\n  /x.db\n"],
  ["tags", "run: !!map { interval: !!str 5s }"],
  ["another version of YAML", "%YAML 1.1\n---\nrun: { interval: 5s }"],
  ["a merge of a list of what are no mappings", "run: { <<: [1] }"],
  ["a second document with nothing in it", "run: { interval: 5s }\n...\n...\n"],
  ["a signed hexadecimal number", "dispatch: { concurrency: +0x5 }"],
];

describe("the two parsers", () => {
  test.each(FINE)("read the same settings from %j", (text) => {
    const read = quick(text);
    expect(read).not.toBeNull();
    expect(careful(text).settings).toEqual(read as NonNullable<typeof read>);
  });

  test.each(BUN_ALONE)("differ on %s, which only the quick one accepts", (_, text) => {
    expect(quick(text)).not.toBeNull();
    expect(problems(text)).not.toEqual([]);
    expect(isSimple(text, Bun.YAML.parse(text))).toBe(false);
  });

  test("read the same settings from any valid file, however it is written", () => {
    fc.assert(
      fc.property(settings, style, (value, written) => {
        const text = print(value, written);
        // The printer may fold a line between the halves of a surrogate pair.
        fc.pre(text.isWellFormed());
        const read = quick(text);
        expect(read).not.toBeNull();
        expect(careful(text).settings).toEqual(read as NonNullable<typeof read>);
      }),
      { numRuns: 150, interruptAfterTimeLimit: 3_000 },
    );
  });

  test("never read different settings from a file that both accept, whatever slipped into it", () => {
    fc.assert(
      fc.property(
        settings,
        style,
        fc.nat(),
        fc.constantFrom("", "\t", "x", ": ", "- ", "[", "}", '"', "#", "\n", "~", "&a ", "{payload}"),
        (value, written, at, slip) => {
          const text = print(value, written);
          const cut = at % (text.length + 1);
          // A carriage return alone is refused before either parser sees it.
          const broken = (text.slice(0, cut) + slip + text.slice(slip === "" ? cut + 1 : cut)).toWellFormed().replace(/\r(?!\n)/g, "");
          const told = problems(broken);
          const read = quick(broken);
          if (read !== null && told.length === 0) expect(careful(broken).settings).toEqual(read);
          if (read !== null && isSimple(broken, Bun.YAML.parse(broken))) expect(told).toEqual([]);
        },
      ),
      { numRuns: 150, interruptAfterTimeLimit: 3_000 },
    );
  });
});

const text = fc
  .string({ unit: "grapheme", maxLength: 12 })
  .map((word) => word.toWellFormed().replaceAll("\0", ""))
  .filter((word) => !/\{\s*[\w-]+\s*\}/.test(word));
const command = fc.constantFrom("notify", "./bin/notify", "~/bin/notify", "/usr/bin/notify", "no", "a b");
const placeholder = fc.constantFrom(...PLACEHOLDERS).map((name) => `{${name}}`);
const duration = fc.constantFrom("1ms", "1s", "1m30s", "0.5h", " 10s ");
const route = fc.record(
  {
    notify_template: fc.tuple(command, fc.array(fc.oneof(text, placeholder), { maxLength: 4 })).map(([first, rest]) => [first, ...rest]),
    timeout: duration,
    max_attempts: fc.integer({ min: 1, max: 1_000 }),
    backoff: fc.record(
      { base: fc.constantFrom(0, "1s", "30s"), max: fc.constantFrom("30m", "1h"), jitter: fc.constantFrom(0, 0.25, 1) },
      { requiredKeys: [] },
    ),
    permanent_exit_codes: fc.array(fc.integer({ min: 1, max: 255 }), { maxLength: 3 }),
    env: fc.dictionary(fc.constantFrom("PATH", "A", "no", "x.y", "é"), text, { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);
const settings = fc.record(
  {
    database: fc.constantFrom("x.db", "~/x.db", "/x/y.db"),
    sources: fc
      .dictionary(fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/), fc.constantFrom("a.db", "/b.db"), { maxKeys: 3 })
      .map(({ default: _, ...rest }) => rest),
    dispatch: fc
      .tuple(
        route,
        fc.record(
          {
            routes: fc.dictionary(
              text.filter((name) => name !== ""),
              route,
              { maxKeys: 3 },
            ),
          },
          { requiredKeys: [] },
        ),
      )
      .map(([own, more]) => ({ ...own, ...more })),
    limits: fc.record({ payload: fc.constantFrom(1, 4_096, "8KiB"), output: fc.constantFrom(0, "1 MiB") }, { requiredKeys: [] }),
    log: fc.constantFrom(null, {}, { level: "warn", format: "json" }),
  },
  { requiredKeys: [] },
);
const style = fc.record({
  collectionStyle: fc.constantFrom("any" as const, "block" as const, "flow" as const),
  defaultStringType: fc.constantFrom(
    "PLAIN" as const,
    "QUOTE_DOUBLE" as const,
    "QUOTE_SINGLE" as const,
    "BLOCK_LITERAL" as const,
    "BLOCK_FOLDED" as const,
  ),
  lineWidth: fc.constantFrom(0, 20, 80),
  indent: fc.constantFrom(1, 2, 5),
  newline: fc.constantFrom("\n", "\r\n"),
});

function print(value: unknown, { newline, ...how }: { readonly newline: string } & Parameters<Document["toString"]>[0]): string {
  return new Document(value, { aliasDuplicateObjects: false }).toString(how).replaceAll("\n", newline);
}
