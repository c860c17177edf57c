import { describe, expect, test } from "bun:test";
import { attemptsFor, DEFAULT_BACKOFF } from "../../../src/core/backoff.ts";
import { policyFor } from "../../../src/settings/settings.ts";
import { formatSize, parseSize } from "../../../src/settings/size.ts";
import { careful } from "./scratch.ts";

const settingsOf = (text: string) => careful(text).settings;

describe("a path", () => {
  test.each([
    ["/a/b.db", "/a/b.db"],
    ["~/b.db", "/home/me/b.db"],
    ["b.db", "/etc/here/b.db"],
    ["./c/../b.db", "/etc/here/b.db"],
    ["../b.db", "/etc/b.db"],
    ["/a//./b.db", "/a/b.db"],
  ])("%s of a database is %s", (written, resolved) => {
    expect(settingsOf(`database: ${written}`).database).toBe(resolved);
    expect(settingsOf(`sources: { s: ${written} }`).sources.get("s")).toBe(resolved);
  });

  test.each([
    ["notify", "notify"],
    ["./notify", "/etc/here/notify"],
    ["bin/notify", "/etc/here/bin/notify"],
    ["~/bin/notify", "/home/me/bin/notify"],
    ["/bin/notify", "/bin/notify"],
  ])("%s as a command is %s, and an argument stays as it is", (written, resolved) => {
    const text = `dispatch: { notify_template: [${written}, ~/x, ./y] }`;
    expect(settingsOf(text).dispatch.default.notifyTemplate).toEqual([resolved, "~/x", "./y"]);
  });

  test("of a database is the default place however it is written", () => {
    expect(settingsOf("database: ~/.local/state/outbox/outbox.db").databaseIsDefault).toBeTrue();
    expect(settingsOf("database: ~/outbox.db").databaseIsDefault).toBeFalse();
  });

  test("of `database` comes first among the sources, as default", () => {
    expect([...settingsOf("sources: { b: /b, a: /a }\ndatabase: /d").sources]).toEqual([
      ["default", "/d"],
      ["b", "/b"],
      ["a", "/a"],
    ]);
  });
});

describe("a route", () => {
  const text = `
dispatch:
  notify_template: [all]
  timeout: 3s
  max_attempts: 5
  backoff: { base: 1s, max: 1m, jitter: 0 }
  permanent_exit_codes: [64]
  env: { A: all, B: all }
  routes:
    bare:
    own: { notify_template: [own], timeout: 4s, max_attempts: 6, backoff: { max: 2m }, permanent_exit_codes: [], env: { B: own } }
`;
  test("takes what it does not set from dispatch", () => {
    const { dispatch } = settingsOf(text);
    expect(dispatch.routes.get("bare")).toEqual(dispatch.default);
    expect(dispatch.routes.get("own")).toEqual({
      notifyTemplate: ["own"],
      timeoutMs: 4_000,
      maxAttempts: 6,
      backoff: { baseMs: 1_000, maxMs: 120_000, jitter: 0 },
      permanentExitCodes: [],
      env: { A: "all", B: "own" },
    });
  });

  test("counts a time for all kinds out with its own backoff", () => {
    const { dispatch } = settingsOf(
      "dispatch: { retry_for: 3d, routes: { a: { backoff: { max: 1h } }, b: { retry_for: 1h }, c: { max_attempts: 2 } } }",
    );
    const day = 86_400_000;
    expect(dispatch.default.maxAttempts).toBe(149);
    expect(dispatch.routes.get("a")?.maxAttempts).toBe(attemptsFor(3 * day, { ...DEFAULT_BACKOFF, maxMs: 3_600_000 }));
    expect(dispatch.routes.get("b")?.maxAttempts).toBe(attemptsFor(day / 24, DEFAULT_BACKOFF));
    expect(dispatch.routes.get("c")?.maxAttempts).toBe(2);
  });

  test("has an environment without a prototype, so that no name is there unasked", () => {
    const { dispatch } = settingsOf("dispatch: { env: { A: x }, routes: { a: { env: { __proto__: y } } } }");
    expect(Object.entries(dispatch.routes.get("a")?.env ?? {})).toEqual([
      ["A", "x"],
      ["__proto__", "y"],
    ]);
    expect(dispatch.default.env["constructor"]).toBeUndefined();
  });
});

describe("policyFor()", () => {
  test.each([
    ["no route, no template", "", "k", "default"],
    ["a template alone", "dispatch: { notify_template: [n] }", "k", "default"],
    ["a template and another route", "dispatch: { notify_template: [n], routes: { x: {} } }", "k", "default"],
    ["its route", "dispatch: { routes: { k: { notify_template: [n] } } }", "k", "route"],
    ["another route and no template", "dispatch: { routes: { x: { notify_template: [n] } } }", "k", "none"],
    ["a name that every object has", "dispatch: { routes: { x: { notify_template: [n] } } }", "constructor", "none"],
    ["__proto__ without a route", "dispatch: { routes: { x: { notify_template: [n] } } }", "__proto__", "none"],
    ["__proto__ with a route", "dispatch: { routes: { __proto__: { notify_template: [n] } } }", "__proto__", "route"],
  ] as const)("with %s", (_, text, kind, expected) => {
    const settings = settingsOf(text);
    const policy = policyFor(settings, kind);
    const found = policy === null ? "none" : policy === settings.dispatch.default ? "default" : "route";
    expect(found).toBe(expected);
  });
});

describe("a size", () => {
  test.each([
    ["0", 0],
    ["512B", 512],
    ["8KiB", 8_192],
    ["1.5 MiB", 1_572_864],
    ["1GiB", 1_073_741_824],
  ])("%s is %d bytes", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
    expect(parseSize(formatSize(bytes))).toBe(bytes);
  });

  test.each(["", "1k", "1KB", "-1", "1e3", "0.5B", "1 MiB x"])("%j is none", (text) => {
    expect(() => parseSize(text)).toThrow();
  });
});
