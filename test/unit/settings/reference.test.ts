import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { advice } from "../../../src/settings/advice.ts";
import { describe as describeSettings } from "../../../src/settings/describe.ts";
import { SETTINGS } from "../../../src/settings/reference.ts";
import { skeleton } from "../../../src/settings/skeleton.ts";
import { settingsSchema } from "../../../scripts/schema.ts";
import { careful, quick } from "./scratch.ts";

function advise(text: string): string[] {
  const explained = careful(text);
  return advice(explained, explained.lineOf).map(({ line, message }) => `${line ?? "-"}: ${message}`);
}

/** The skeleton with the lines of these settings in force. */
function inForce(wanted: (name: string) => boolean): string {
  return skeleton().replace(/^( *)# ([a-z_]+): (.*)$/gm, (line, indent: string, name: string, value: string) =>
    wanted(name) ? `${indent}${name}: ${value}` : line,
  );
}

describe("the file that init writes", () => {
  test("means what no file means, to both readers", () => {
    expect(careful(skeleton()).settings).toEqual(careful("").settings);
    expect(quick(skeleton())).toEqual(careful("").settings);
    expect(advise(skeleton())).toEqual(advise(""));
  });

  test("shows every setting that has a default with that default", () => {
    const examples = new Set(SETTINGS.filter(({ example }) => example !== null).map(({ path }) => path.at(-1)));
    const text = inForce((name) => !examples.has(name) || name === "database");
    expect(text).toContain("\n  timeout: 10s\n");
    expect(careful(text).settings).toEqual(careful("").settings);
  });

  test("shows examples that are right, and asks only for a template", () => {
    for (const name of ["notify_template", "env", "routes", "sources", "retry_for"]) {
      const text = inForce((line) => line === name);
      expect(text).not.toBe(skeleton());
      expect(careful(text).settings).not.toEqual(careful("").settings);
    }
    expect(advise(inForce((name) => name === "notify_template"))).toEqual([]);
  });

  test("has no line that is too long for a terminal of 120 columns", () => {
    expect(
      skeleton()
        .split("\n")
        .filter((line) => line.length > 120),
    ).toEqual([]);
  });
});

describe("the JSON Schema", () => {
  test("is what the settings say; else run scripts/schema.ts", () => {
    expect(readFileSync(join(import.meta.dir, "../../../src/settings/schema.json"), "utf8")).toBe(settingsSchema());
  });
});

describe("the reference", () => {
  test("explains every setting", () => {
    expect(SETTINGS.filter(({ about }) => !/^[A-Z0-9].*\.$/.test(about))).toEqual([]);
  });

  test("lists no setting twice", () => {
    const names = SETTINGS.map(({ path }) => path.join("."));
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("describe()", () => {
  test("shows every setting of the reference", () => {
    const shown = describeSettings(careful(""), null).map(({ name }) => name);
    // Shown as the number of attempts that it comes to.
    const fixed = SETTINGS.filter(({ path, section }) => !section && !path.includes("*") && path.at(-1) !== "retry_for");
    expect(shown.toSorted()).toEqual(fixed.map(({ path }) => path.join(".")).toSorted());
  });

  test("says where each value comes from, for a route the nearest place", () => {
    const text = "dispatch:\n  timeout: 3s\n  retry_for: 3d\n  routes:\n    ping:\n      timeout: 4s\nsources: { shop: /s.db }";
    const shown = new Map(describeSettings(careful(text), { database: "/other.db", from: "--db" }).map((one) => [one.name, one]));
    expect(shown.get("database")).toMatchObject({ value: "/other.db", from: "--db" });
    expect(shown.get("sources.shop")).toMatchObject({ value: "/s.db", from: "F:7" });
    expect(shown.get("dispatch.timeout")).toMatchObject({ value: "3s", from: "F:2" });
    expect(shown.get("dispatch.max_attempts")).toMatchObject({ value: 149, from: "F:3" });
    expect(shown.get("dispatch.routes.ping.timeout")).toMatchObject({ value: "4s", from: "F:6" });
    expect(shown.get("dispatch.routes.ping.max_attempts")).toMatchObject({ value: 149, from: "F:3" });
    expect(shown.get("dispatch.routes.ping.backoff.base")).toMatchObject({ value: "30s", from: "default" });
  });
});

const ADVISED: readonly (readonly [string, ...string[]])[] = [
  ["", "-: dispatch.notify_template is not set, so nothing can be delivered"],
  ["dispatch: { routes: { a: { notify_template: [n] } } }"],
  ['dispatch: { notify_template: [n, --, "{deliver_to}"] }'],
  [
    'dispatch:\n  notify_template: [n, "{deliver_to}", --, "{kind}"]',
    "2: dispatch.notify_template has {deliver_to} with no -- before it: a value that begins with - would be taken for an option",
  ],
  [
    'dispatch:\n  notify_template: [n, --, "{payload}", "{payload}", "{ack_token}"]',
    "2: dispatch.notify_template shows {payload} to every user of this machine, as all arguments are; leave it out and read the envelope from stdin",
    "2: dispatch.notify_template shows {ack_token} to every user of this machine, as all arguments are; leave it out and read OUTBOX_ACK_TOKEN from the environment",
  ],
  [
    'dispatch:\n  notify_template: [n]\n  routes:\n    a: {}\n    b: { notify_template: [n, "{id}"] }',
    "5: dispatch.routes.b.notify_template has {id} with no -- before it: a value that begins with - would be taken for an option",
  ],
  [
    "dispatch: { notify_template: [n], per_destination: 2, circuit: { failures: 0 } }\nsources: { a: /a }\nretention: { delivered: 1d, inbox: 0 }",
  ],
  ["dispatch: { notify_template: [n], circuit: {} }\nsources: {}\nretention:"],
];

describe("advice()", () => {
  test.each(ADVISED)("of %j", (text, ...warnings) => {
    expect(advise(text)).toEqual(warnings);
  });
});
