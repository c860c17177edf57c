import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MAX_DEPTH, members, objectProblem, trimJson } from "../../../src/core/json.ts";

const nested = (depth: number, open: string, close: string): string => open.repeat(depth - 1) + "{}" + close.repeat(depth - 1);
const LONE = "has an escaped lone surrogate (half of a character), which is not valid Unicode";

describe("objectProblem()", () => {
  test.each([
    ["{}"],
    ['{"a":[1,-2.5e3,true,false,null,"x"],"b":{"c":{}}}'],
    ['{ "a" : 1 ,\r\n\t"a" : 2 }'],
    ['{"n":9007199254740993,"big":1e400,"zero":-0.0}'],
    ['{"__proto__":1,"constructor":2}'],
    ['{"pair":"\\ud83d\\ude00","raw":"😀","nul":"\\u0000"}'],
    ['{"no escape":"\\\\ud800"}'], // a backslash, then the letters ud800
    ['{"two":"\\\\\\ud83d\\uDE00\\\\"}'],
    ['{"quote":"\\"}{\\"","\\"":"["}'],
    [nested(MAX_DEPTH, '{"a":', "}")],
    [`{"a":${"[".repeat(MAX_DEPTH - 1)}${"]".repeat(MAX_DEPTH - 1)}}`],
    [`{"a":"${"[{".repeat(5_000)}"}`], // brackets in a text are no depth
  ])("finds nothing wrong with %p", (text) => expect(objectProblem(text)).toBeNull());

  test.each([
    ["[]", "is an array, not an object"],
    ["null", "is null, not an object"],
    ["1", "is a number, not an object"],
    ['"x"', "is a string, not an object"],
    ["true", "is a boolean, not an object"],
    ["\uFEFF{}", "starts with a byte order mark, which JSON does not allow"],
    ["", "is empty"],
    [" \n", "is empty"],
    ['{"a":"\uD800"}', "is not valid Unicode (a lone surrogate)"],
    ['{"a":"\\ud800"}', LONE],
    ['{"a":"\\udc00"}', LONE],
    ['{"a":"\\udc00\\ud800"}', LONE],
    ['{"a":"\\ud800\\ud800\\udc00"}', LONE],
    ['{"a":"\\ud83d \\ude00"}', LONE],
    ['{"a":"\\ud83d\\\\ude00"}', LONE],
    ['{"\\uD800":1}', LONE],
    ['{"a":"\\\\\\ud800"}', LONE],
    [nested(MAX_DEPTH + 1, '{"a":', "}"), `is nested deeper than ${MAX_DEPTH} levels`],
    [`{"a":${"[".repeat(MAX_DEPTH)}${"]".repeat(MAX_DEPTH)}}`, `is nested deeper than ${MAX_DEPTH} levels`],
    ["[".repeat(1_000_000), `is nested deeper than ${MAX_DEPTH} levels`],
  ])("says what is wrong with %p", (text, problem) => expect(objectProblem(text)).toBe(problem));

  test.each([
    "{",
    "{'a':1}",
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":1,}',
    '{"a":01}',
    "{a:1}",
    '{"a":1}{"b":2}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":1} x',
    "{}\u00A0",
    '{"a":"',
    '{"a":"\\',
    "// no\n{}",
  ])("refuses %p as no JSON", (text) => expect(objectProblem(text)).toMatch(/^is not JSON: ./));

  test("takes time in proportion to the text, whatever it holds", () => {
    const texts = [
      JSON.stringify({ a: Array.from({ length: 120_000 }, () => "abcdef") }),
      JSON.stringify({ a: Array.from({ length: 120_000 }, () => "\\") }),
      `{"a":"${"\\ud83d\\ude00".repeat(80_000)}"}`,
      `{${" ".repeat(1_000_000)}}`,
    ];
    const began = performance.now();
    for (const text of texts) expect(objectProblem(text)).toBeNull();
    expect(performance.now() - began).toBeLessThan(2_000); // where it grew with the square it took minutes
  });

  test("agrees with the platform's parser about every object", () => {
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => expect(objectProblem(JSON.stringify(value))).toBeNull()));
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0d8 1n'.split("")) }), (text) => {
        let parses = false;
        try {
          const value: unknown = JSON.parse(text);
          parses = typeof value === "object" && value !== null && !Array.isArray(value);
        } catch {
          // not JSON
        }
        const problem = objectProblem(text);
        if (problem === null) expect(parses).toBe(true);
        else if (problem !== LONE) expect(parses).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  test("finds half a character exactly where the platform does", () => {
    const unit = fc.constantFrom("\\ud800", "\\udbff", "\\udc00", "\\udfff", "\\uD83D\\uDE00", "\\\\", "\\u0041", "u", "d800", "x", '\\"');
    fc.assert(
      fc.property(fc.array(unit), (units) => {
        const text = `{"a":"${units.join("")}"}`;
        const { a } = JSON.parse(text) as { a: string };
        expect(objectProblem(text) === null).toBe(a.isWellFormed());
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("members()", () => {
  test.each([
    ["{}", []],
    [" { } ", []],
    ['{"a":1}', [["a", "1"]]],
    [
      '{ "b" : 9007199254740993 ,\n"a": [1, {"x": "]"}] , "b":"}\\"," }',
      [
        ["b", "9007199254740993"],
        ["a", '[1, {"x": "]"}]'],
        ["b", '"}\\","'],
      ],
    ],
    ['{"\\u0061\\"":null}', [['a"', "null"]]],
    ['{"__proto__":{}}', [["__proto__", "{}"]]],
  ] as const)("of %p", (text, expected) => {
    expect(members(text).map(({ name, value }) => [name, value])).toEqual(expected.map((pair) => [...pair]));
  });

  const spaced = (value: unknown, space: number): string => JSON.stringify(value, null, space) ?? "null";

  test("have exactly the names and values that the platform's parser finds", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), fc.integer({ min: 0, max: 3 }), (value, space) => {
        const text = spaced(value, space);
        const parsed = JSON.parse(text) as Record<string, unknown>;
        const found = members(text);
        expect(found).toHaveLength(Object.keys(parsed).length);
        expect(Object.fromEntries(found.map(({ name, value: raw }) => [name, JSON.parse(raw) as unknown]))).toEqual(parsed);
        for (const { value: raw } of found) expect(text).toContain(raw);
      }),
    );
  });
});

test.each([
  [" \t\r\n{} \n", "{}"],
  ["{}", "{}"],
  ["", ""],
  [" \n ", ""],
  ["\uFEFF{}", "\uFEFF{}"],
  ["\u00A0{}\u2003", "\u00A0{}\u2003"],
])("trimJson() of %p is %p", (text, trimmed) => expect(trimJson(text)).toBe(trimmed));
