/** Which files need no second parser: what passes as simple must be read alike, to the last value. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseDocument } from "yaml";
import { isSimple } from "../../../src/settings/simple.ts";
import { problems, quick } from "./scratch.ts";

function parsed(text: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch {
    return undefined;
  }
}

const simple = (text: string): boolean => isSimple(text, parsed(text));

const USUAL = `# Where it is
database: ~/.local/state/outbox/outbox.db
# How it is sent
dispatch:
  notify_template: ["~/bin/notify", --, -x, "{deliver_to}"] # "quoted"
  timeout: 10s
  backoff: { base: 30s, max: 30m, jitter: 0.2 }
  routes:
    revival_ping: { notify_template: [tmux-ping, "a # b"], timeout: 30s }
    other:
      notify_template:
        - /usr/bin/other
        - --
        - "{id}"
      max_attempts: 3
      env: { PATH: /usr/local/bin:/usr/bin:/bin }
    mail: { notify_template: [mail, -s, 'a title', --to, me@example.com, https://example.com/x] }

run: { interval: 30s, shutdown_grace: 10s }
limits: { payload: 1MiB, output: 4096 }
log: { level: error }
sources:
`;

describe("isSimple()", () => {
  test("takes what people usually write", () => {
    for (const text of [USUAL, "", "\n", "# nothing", "run: { interval: 5s }", "a: []", "a: {}"])
      expect([text, simple(text)]).toEqual([text, true]);
  });

  test.each([
    "a: b\na: c\n",
    "a: { b: 1, b: 2 }",
    "a:\n  b: 1\nc:\n  d: 1\na:\n  e: 1\n",
    "a:\n    b: 1\n  c: 2\n",
    "a:\n- b\n",
    "a: b\n  c: 1",
    " a: b",
    "a:\tb",
    "a: b\r\n",
    "a: é",
    "a: on",
    "a: [yes]",
    "on: 1",
    "a: .inf",
    "a: +5",
    "a: 010",
    "a: 0x10",
    "a: 1e3",
    "a: 2026-01-01",
    "a: &x b",
    "a: *x",
    "a: !!str b",
    "a: |\n  b",
    "a: >-\n  b",
    "<<: { a: 1 }",
    "a: b: c",
    "a:b",
    "a: [b, c: d]",
    "a: [b,, c]",
    "a: [b",
    "a: b c",
    "a: 'it''s'",
    "a: b:",
    "a: /b: c",
    "a: 'b",
    'a: "\\x41"',
    'a: "b\n  c"',
    'a: "b"c',
    "? a\n: b",
    "---\na: b",
    "a: b\n---\nc: d",
    "%YAML 1.1\n---\na: b",
    "- a",
    "1.10: a",
    "~: a",
    "a: {b: [}]",
  ])("leaves %j to the other parser", (text) => {
    expect(simple(text)).toBe(false);
  });

  const name = fc.constantFrom(
    "run",
    "dispatch",
    "env",
    "interval",
    "a",
    "b-c",
    "A",
    "__proto__",
    "on",
    "n",
    "null",
    "1",
    "x.y",
    "constructor",
  );
  const word = fc.constantFrom(
    ..."10s 5 0 1.5 1MiB 08 1_0 0b1 -5 -1e5 5. .5 1e3 nul yes. no/x ~ ~/x ./x ../x .. /x x.db - -- -x --- true-ish TRUE null. inf Nan y x:y /x:/y x: a@b --x ~/.x x# #x : , [] {} <<".split(
      " ",
    ),
    '"a"',
    '"a # b"',
    '"{x}"',
    '" "',
    '""',
    "'a'",
    "'it''s'",
    "'a: \"b\" # c'",
  );
  const slip = fc.string({ unit: fc.constantFrom(...`an1e05x./~:@-_'"# +,`.split("")), minLength: 1, maxLength: 6 });
  const item = fc.oneof(
    { weight: 4, arbitrary: word },
    { weight: 2, arbitrary: slip },
    fc.array(fc.oneof(word, slip), { maxLength: 3 }).map((each) => `[${each.join(", ")}]`),
    fc.array(fc.tuple(name, word), { maxLength: 3 }).map((each) => `{ ${each.map(([key, value]) => `${key}: ${value}`).join(", ")} }`),
  );
  const indent = fc.constantFrom("", "", "  ", "  ", "    ", " ");
  const line = fc.oneof(
    fc.tuple(indent, name).map(([depth, key]) => `${depth}${key}:`),
    fc
      .tuple(indent, name, item, fc.constantFrom("", "", " # why", ' "x', "  "))
      .map(([depth, key, value, end]) => `${depth}${key}: ${value}${end}`),
    fc.tuple(indent, item).map(([depth, value]) => `${depth}- ${value}`),
    fc.constantFrom("", "# x", "  # y", "---", "..."),
  );

  test("takes nothing that two parsers read differently, and much of what they read alike", () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.constantFrom("", "", "dispatch:\n  env:\n    "), fc.array(line, { maxLength: 5 }), (above, lines) => {
        // Any name may stand in there.
        const text = above + lines.join(above === "" ? "\n" : "\n    ");
        if (!simple(text)) return;
        taken += 1;
        const document = parseDocument(text);
        expect([document.errors, document.warnings]).toEqual([[], []]);
        expect(document.toJS() ?? null).toEqual((parsed(text) as object | undefined) ?? null);
        // Nor has the careful reader a rule of its own against what the quick one takes.
        if (quick(text) !== null) expect(problems(text)).toEqual([]);
      }),
      { numRuns: 6_000 },
    );
    expect(taken).toBeGreaterThan(600);
  });
});
