import { describe, expect, test } from "bun:test";
import { SettingsError } from "../../../src/settings/problem.ts";
import { careful, problems, quick } from "./scratch.ts";

/** A file and all that is told of it. */
const WRONG: readonly (readonly [string, ...string[]])[] = [
  // Names.
  ["dispatch:\n  timeot: 10s", "F:2:3: dispatch.timeot is no setting; did you mean timeout?"],
  ["dispatch: { maxAttempts: 3 }", "F:1:13: dispatch.maxAttempts is no setting; did you mean max_attempts?"],
  ["timeout: 3s", "F:1:1: timeout is no setting; did you mean dispatch.timeout?"],
  ["dispatch:\n  base: 3s", "F:2:3: dispatch.base is no setting; did you mean dispatch.backoff.base?"],
  ["colour: blue", "F:1:1: colour is no setting"],
  ["a: 1\nb: 2", "F:1:1: a is no setting", "F:2:1: b is no setting"],
  [
    "__proto__: 1\nconstructor: 2\ntoString: 3",
    "F:1:1: __proto__ is no setting",
    "F:2:1: constructor is no setting",
    "F:3:1: toString is no setting",
  ],
  ["dispatch: { timeout: 1s, timeout: 2s }", "F:1:26: timeout is set twice in one mapping; keep one of them"],
  ['run: {}\n"run": {}', 'F:2:1: "run" is set twice in one mapping; keep one of them'],
  ["dispatch:\n  routes: { 1.10: {} }", "F:2:13: a name that YAML reads as 1.1; write it in quotes"],
  ["dispatch:\n  routes: { ~: {} }", "F:2:13: a name that YAML reads as nothing; write it in quotes"],
  ["? [a]\n: b", "F:1:3: a name must be a word; a list or mapping stands here"],
  ['"a\\nb\\e[2J": 1', 'F:1:1: "a\\x0ab\\x1b[2J" is no setting'],
  // Shapes.
  ["- a", "F:1:1: the file is a list, must be a mapping: names, each with a colon and a value"],
  ["hello", 'F:1:1: the file is "hello", must be a mapping: names, each with a colon and a value'],
  ["dispatch: []", "F:1:11: dispatch is a list, must be a mapping: names, each with a colon and a value"],
  ["dispatch: no", 'F:1:11: dispatch is "no", must be a mapping: names, each with a colon and a value'],
  ["dispatch:\n  timeout:", "F:2:3: dispatch.timeout has no value; give it one, or take the line out"],
  ["run: {}\n---\nrun: {}", "F:2:1: a second document begins here; the file holds one"],
  // Durations and sizes.
  ["dispatch: { timeout: 10 }", 'F:1:22: dispatch.timeout cannot be read: "10" is a number without a unit; write 10s, 10m, 10h or 10d'],
  [
    "run: { interval: -5s }",
    'F:1:18: run.interval cannot be read: "-5s" is not a duration; write numbers with units ms, s, m, h or d, for example 1h30m',
  ],
  ["dispatch: { timeout: 0 }", "F:1:22: dispatch.timeout is 0, must be at least 1ms"],
  ["dispatch: { timeout: true }", "F:1:22: dispatch.timeout is true, must be a duration such as 90s or 1h30m"],
  ["dispatch: { timeout: 25h }", 'F:1:22: dispatch.timeout is "25h", must be at most 1d'],
  [
    "dispatch: { timeout: 1e12 }",
    'F:1:22: dispatch.timeout cannot be read: "1000000000000" is a number without a unit; write 1000000000000s, 1000000000000m, 1000000000000h or 1000000000000d',
  ],
  ["limits: { payload: 0 }", "F:1:20: limits.payload is 0, must be at least 1B"],
  [
    "limits: { output: 1KB }",
    'F:1:19: limits.output cannot be read: "1KB" is not a size; write a number with B, KiB, MiB or GiB, for example 1MiB',
  ],
  ["limits: { payload: 1GiB }", 'F:1:20: limits.payload is "1GiB", must be at most 256MiB'],
  [
    "limits: { payload: .inf }",
    'F:1:20: limits.payload cannot be read: "Infinity" is not a size; write a number with B, KiB, MiB or GiB, for example 1MiB',
  ],
  // Numbers and words.
  ["dispatch: { concurrency: 0 }", "F:1:26: dispatch.concurrency is 0, must be a whole number from 1 to 1024"],
  ["dispatch: { concurrency: yes }", 'F:1:26: dispatch.concurrency is "yes", must be a whole number from 1 to 1024'],
  ['dispatch: { concurrency: "8" }', 'F:1:26: dispatch.concurrency is "8", must be a whole number from 1 to 1024; take the quotes off'],
  ["dispatch: { max_attempts: 1e12 }", "F:1:27: dispatch.max_attempts is 1000000000000, must be a whole number from 1 to 1000000"],
  ["dispatch: { max_attempts: 1.5 }", "F:1:27: dispatch.max_attempts is 1.5, must be a whole number from 1 to 1000000"],
  ["dispatch: { backoff: { jitter: 2 } }", "F:1:32: dispatch.backoff.jitter is 2, must be a number from 0 to 1"],
  ["dispatch: { backoff: { jitter: .nan } }", "F:1:32: dispatch.backoff.jitter is NaN, must be a number from 0 to 1"],
  ["dispatch: { on_config_error: wiat }", 'F:1:30: dispatch.on_config_error is "wiat", must be wait or fail; did you mean wait?'],
  ["log: { level: loud }", 'F:1:15: log.level is "loud", must be error, warn, info or debug'],
  [
    "dispatch: { permanent_exit_codes: [0, 64, 256, '3'] }",
    "F:1:36: dispatch.permanent_exit_codes[0] is 0, must be an exit code from 1 to 255",
    "F:1:43: dispatch.permanent_exit_codes[2] is 256, must be an exit code from 1 to 255",
    'F:1:48: dispatch.permanent_exit_codes[3] is "3", must be an exit code from 1 to 255; take the quotes off',
  ],
  ["dispatch: { permanent_exit_codes: 64 }", "F:1:35: dispatch.permanent_exit_codes is 64, must be a list such as [64, 65]"],
  // Paths.
  ["database: 0600", "F:1:11: database is 600, must be text; write it in quotes"],
  ['database: ""', "F:1:11: database is empty, must be the path of a file"],
  ["database: ':memory:'", 'F:1:11: database is ":memory:", which nobody could read again; a database is a file'],
  ["database: ~other/x.db", 'F:1:11: database is "~other/x.db"; only ~/ is understood, so write the whole path'],
  ["database: /var/lib/", 'F:1:11: database is "/var/lib/", a directory; name a file in it'],
  ["sources: { team: 'postgres://db/x' }", 'F:1:18: sources.team is "postgres://db/x", an address; a database is a file'],
  ["sources: { default: /x }", "F:1:12: sources.default is the name of database itself; choose another"],
  ["sources: { 'a b': /x }", "F:1:12: sources.\"a b\" is no name for a source; use letters, digits, '_', '-' and '.', at most 64"],
  // Environment.
  ["dispatch: { env: { OUTBOX_ID: x } }", "F:1:20: dispatch.env.OUTBOX_ID is a name that outbox sets itself; choose another"],
  ["dispatch: { env: { 'a=b': x } }", 'F:1:20: dispatch.env."a=b" is no name for a variable'],
  ['dispatch: { env: { A: "x\\0y" } }', "F:1:23: dispatch.env.A has a NUL character"],
  ["dispatch: { env: { PORT: 80 } }", "F:1:26: dispatch.env.PORT is 80, must be text; write it in quotes"],
  ["dispatch: { env: { A: ~ } }", 'F:1:20: dispatch.env.A has no value; for an empty one write ""'],
  ['dispatch: { env: { A: "\\ud800" } }', "F:1:23: dispatch.env.A has half of a surrogate pair"],
  // Templates.
  [
    "dispatch:\n  notify_template: [a, {payload}]",
    'F:2:24: dispatch.notify_template[1] is a mapping, must be text; YAML reads {payload} without quotes as a mapping, so write "{payload}"',
  ],
  [
    "dispatch:\n  notify_template:\n    - a\n    - {payload}",
    'F:4:7: dispatch.notify_template[1] is a mapping, must be text; YAML reads {payload} without quotes as a mapping, so write "{payload}"',
  ],
  [
    "dispatch:\n  notify_template: {payload}",
    'F:2:20: dispatch.notify_template is a mapping, must be a list such as [notify-seat, "{deliver_to}"]; YAML reads {payload} without quotes as a mapping, so write "{payload}"',
  ],
  [
    "dispatch:\n  notify_template: [a, {payload}, --id={id}]",
    "F:2:40: not YAML: Missing , or : between flow sequence items; write {payload} in quotes",
  ],
  ["dispatch: { notify_template: cmd }", 'F:1:30: dispatch.notify_template is "cmd", must be a list such as [notify-seat, "{deliver_to}"]'],
  ["dispatch: { notify_template: [] }", "F:1:30: dispatch.notify_template is an empty list; name the command to run"],
  ["dispatch: { notify_template: [''] }", "F:1:31: dispatch.notify_template[0] is empty; the first element is the command to run"],
  ["dispatch: { notify_template: [bin/] }", 'F:1:31: dispatch.notify_template[0] is "bin/", a directory; name a command in it'],
  [
    "dispatch: { notify_template: ['{deliver_to}'] }",
    "F:1:31: dispatch.notify_template[0] has {deliver_to}, but the command itself is never taken from a message; name it, and pass {deliver_to} as an argument",
  ],
  ["dispatch: { notify_template: ['{cmd}'] }", 'F:1:31: dispatch.notify_template[0] is "{cmd}", must be the command to run'],
  [
    "dispatch: { notify_template: [a, '--id={id}'] }",
    'F:1:34: dispatch.notify_template[1] is "--id={id}", where {id} would not be replaced; make "{id}" an element of its own',
  ],
  [
    "dispatch: { notify_template: [a, '{delivr_to}'] }",
    'F:1:34: dispatch.notify_template[1] is "{delivr_to}", no placeholder; did you mean {deliver_to}?',
  ],
  [
    "dispatch: { notify_template: [a, '{ payload }'] }",
    'F:1:34: dispatch.notify_template[1] is "{ payload }", no placeholder; did you mean {payload}?',
  ],
  [
    "dispatch: { notify_template: [a, '{zzzzzzz}'] }",
    'F:1:34: dispatch.notify_template[1] is "{zzzzzzz}", no placeholder; the placeholders are {payload} {deliver_to} {kind} {id} {attempt} {ack_token} {body} {text} {dedup_key} {correlation_id}',
  ],
  ["dispatch: { notify_template: [a, 5] }", "F:1:34: dispatch.notify_template[1] is 5, must be text; write it in quotes"],
  ["dispatch: { notify_template: [a, ~] }", 'F:1:34: dispatch.notify_template[1] is nothing, must be text; for an empty argument write ""'],
  ['dispatch: { notify_template: [a, "b\\0c"] }', "F:1:34: dispatch.notify_template[1] has a NUL character"],
  // What does not fit together.
  ["dispatch:\n  max_attempts: 3\n  retry_for: 3d", "F:3:3: dispatch.retry_for cannot stand beside max_attempts; keep one of the two"],
  [
    "dispatch:\n  routes:\n    a: { retry_for: 5h, max_attempts: 3 }",
    "F:3:10: dispatch.routes.a.retry_for cannot stand beside max_attempts; keep one of the two",
  ],
  [
    "dispatch:\n  retry_for: 3d\n  backoff: { base: 0 }",
    "F:2:3: dispatch.retry_for cannot be met: retry_for needs a backoff that waits; set backoff.base and backoff.max above 0, or use max_attempts",
  ],
  [
    "dispatch:\n  retry_for: 3d\n  routes:\n    a: { backoff: { base: 0 } }",
    "F:4:10: dispatch.routes.a.backoff cannot be met: retry_for needs a backoff that waits; set backoff.base and backoff.max above 0, or use max_attempts",
  ],
  ["dispatch:\n  backoff: { base: 1h }", "F:2:3: dispatch.backoff would wait 1h (base) but at most 30m (max); set max to base or more"],
  // What is not YAML, or YAML of another kind.
  ["dispatch:\n\ttimeout: 3s", "F:2:1: a tab in the indentation; YAML takes spaces only"],
  ["log:\n  level: a: b", "F:2:10: not YAML: Nested mappings are not allowed in compact mappings"],
  ["log: @x", "F:1:6: not YAML: Plain value cannot start with reserved character @"],
  ["log: *x", "F:1:6: *x stands for nothing: no &x comes before it"],
  ["sources:\n  <<: 8", "F:2:3: << takes in a mapping (*name) or a list of mappings"],
  ["run: { <<: [1] }", "F:1:8: << takes in a mapping (*name) or a list of mappings"],
  ['run: { "<<": 8 }', 'F:1:8: run."<<" is no setting'],
  ["log: !!map {}", "F:1:12: a tag (tag:yaml.org,2002:map) has no meaning here; take it out"],
  ["%YAML 1.1\n---\nlog: {}", "F:1:1: %YAML 1.1 is not understood; settings are YAML 1.2"],
  ["dispatch: &a\n  routes: *a", "F:2:3: dispatch.routes.routes.routes is no setting; did you mean dispatch.routes?"],
  // A merged mapping is told of by its place.
  ["dispatch:\n  routes:\n    a: { <<: { timeot: 3s } }", "F:3:16: dispatch.routes.a.timeot is no setting; did you mean timeout?"],
];

describe("a wrong file", () => {
  test.each(WRONG)("%j is told with its place", (text, ...told) => {
    expect(problems(text)).toEqual(told);
  });

  test("shows at most ten problems and counts the rest", () => {
    const text = Array.from({ length: 12 }, (_, index) => `k${index}: 1`).join("\n");
    const told = problems(text);
    expect(told).toHaveLength(11);
    expect(told.at(-1)).toBe("F: and 2 more");
  });

  test("is one line as a message, with the number of further problems", () => {
    let error: unknown;
    try {
      careful("a: 1\nb: 2\nc: 3");
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(SettingsError);
    expect(error).toMatchObject({ kind: "settings", message: "F:1:1: a is no setting", hint: "2 more: outbox config check lists them" });
  });

  test.each([
    ["nested lists", "[".repeat(20_000)],
    ["nested mappings", "{a: ".repeat(20_000)],
    ["a lone key as long as a file may be", `${"k".repeat(262_000)}: 1`],
    [
      "aliases that multiply",
      `a: &a [x, x]\n${Array.from({ length: 30 }, (_, i) => `${"b".repeat(i + 1)}: &${"b".repeat(i + 1)} [*${i === 0 ? "a" : "b".repeat(i)}, *${i === 0 ? "a" : "b".repeat(i)}]`).join("\n")}`,
    ],
  ])("of %s is refused quickly", (_, text) => {
    expect(problems(text)).not.toEqual([]);
    expect(quick(text)).toBeNull();
  });
});

describe("loadSettings()", () => {
  test("knows the line of what the file sets, through merges and aliases, and of nothing else", () => {
    const { lineOf } = careful("dispatch:\n  routes:\n    a: &a\n      timeout: 3s\n    b:\n      <<: *a\n      max_attempts: 3\n");
    expect(lineOf(["dispatch", "routes", "a", "timeout"])).toBe(4);
    expect(lineOf(["dispatch", "routes", "b", "timeout"])).toBe(4);
    expect(lineOf(["dispatch", "routes", "b", "max_attempts"])).toBe(7);
    expect(lineOf(["dispatch", "timeout"])).toBeNull();
    expect(lineOf([])).toBeNull();
  });
});
