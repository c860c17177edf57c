import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chain, importsOf, reach } from "./tidy/imports.ts";
import { strayImports } from "./tidy/rooms.ts";
import { complaints, RULES } from "./tidy/rules.ts";

const root = join(import.meta.dir, "..");

/** Every file of ours that is text, by its path from the root. */
const FILES: ReadonlyMap<string, string> = new Map(
  [...new Bun.Glob("**/*.{ts,mjs,sh,sql,md,json,toml,yaml}").scanSync({ cwd: root, dot: true }), ".ci/run", ".npmrc", "LICENSE"]
    .filter((path) => !/^(node_modules|dist|coverage|\.git)\//.test(path))
    .map((path) => [path, readFileSync(join(root, path), "utf8")]),
);

/** What a shell waits for when it enqueues. */
const ENQUEUE_PATH = ["src/main.ts", "src/cli/command.ts", ...["enqueue", "revive", "ack"].map((name) => `src/cli/commands/${name}.ts`)];
/** Measured with bytecode: consola 6 ms, citty 2.3 ms, where an empty program takes 4 ms. */
const TOO_SLOW_FOR_IT = /^(citty|consola|yaml)(\/|$)|^src\/(dispatcher|transport)\//;

test("the files are found", () => {
  for (const path of ["src/core/lifecycle.ts", "test/tidy.test.ts", "scripts/check.ts", "package-lock.json", ".ci/run"])
    expect(FILES.has(path)).toBe(true);
});

test.each(RULES)("$says", (rule) => {
  expect([...FILES].flatMap(([path, text]) => complaints(rule, path, text))).toEqual([]);
});

test.each(RULES)("a file is caught where it does not hold that $says", (rule) => {
  for (const [path, text] of rule.bad) expect({ text, caught: complaints(rule, path, text).length > 0 }).toEqual({ text, caught: true });
  for (const [path, text] of rule.good ?? []) expect(complaints(rule, path, text)).toEqual([]);
});

test.each(RULES)("every file that is excused exists: $says", (rule) => {
  for (const path of Object.keys(rule.except ?? {})) expect(FILES.has(path)).toBe(true);
});

test("every room imports only what it may", () => {
  expect([...FILES].flatMap(([path, text]) => strayImports(path, text).map((stray) => `${path}: ${stray}`))).toEqual([]);
});

test.each([
  ["src/core/a.ts", 'import { hostClock } from "../host.ts";'],
  ["src/core/a.ts", 'import type { Database } from "bun:sqlite";'],
  ["src/host.ts", 'import type { Status } from "./core/lifecycle.ts";'],
  ["src/settings/read.ts", 'import { parse } from "yaml";'],
  ["src/settings/read.ts", 'const { parse } = await import("yaml");'],
  ["src/store/queries.ts", 'import { Database } from "bun:sqlite";'],
  ["src/store/open.ts", 'import type { Settings } from "../settings/settings.ts";'],
  ["src/transport/spawn.ts", 'import {\n  type Clock,\n  hostClock,\n} from "../host.ts";'],
  ["src/dispatcher/tick.ts", 'import { spawnTransport } from "../transport/spawn.ts";'],
  ["src/index.ts", 'export * from "./cli/exit.ts";'],
  ["src/index.ts", 'export { Database } from "bun:sqlite";'],
  ["src/cli/commands/ls.ts", 'import { Database } from "bun:sqlite";'],
  ["src/cli/commands/ls.ts", 'import "left-pad";'],
  ["src/somewhere.ts", ""],
] as const)("%s is caught with %s", (path, text) => {
  expect(strayImports(path, text)).toHaveLength(1);
});

test("importsOf() tells value, type and lazy imports apart and reads no comment", () => {
  const text = [
    'import type { A } from "./a.ts";',
    'import { type B, b } from "../b.ts";',
    'import c, {\n  d,\n} from "pkg";',
    'export type { E } from "./e.ts";',
    'export { f } from "./f.ts";',
    'import "./g.ts";',
    'const h = await import("./h.ts");',
    'type I = typeof import("./i.ts");',
    '// import "./no.ts";\n/*\nimport "./no.ts";\n*/',
    'export const text = "from";\nexport const more = "./no.ts";',
  ].join("\n");
  expect(importsOf("src/x/y.ts", text)).toEqual([
    { target: "src/x/a.ts", how: "type" },
    { target: "src/b.ts", how: "value" },
    { target: "pkg", how: "value" },
    { target: "src/x/e.ts", how: "type" },
    { target: "src/x/f.ts", how: "value" },
    { target: "src/x/g.ts", how: "value" },
    { target: "src/x/h.ts", how: "lazy" },
    { target: "src/x/i.ts", how: "type" },
  ]);
});

test("the enqueue path loads nothing that is slow to load", () => {
  for (const path of ENQUEUE_PATH) expect({ path, there: FILES.has(path) }).toEqual({ path, there: true });
  const reached = reach(ENQUEUE_PATH, (path) => FILES.get(path) ?? null);
  const slow = [...reached.keys()].filter((target) => TOO_SLOW_FOR_IT.test(target));
  expect(slow.map((target) => chain(reached, target))).toEqual([]);
});

test("reach() follows value imports only and tells the way", () => {
  const files: Readonly<Record<string, string>> = {
    "src/main.ts": 'import { a } from "./cli/a.ts";\nconst run = () => import("./cli/run.ts");\nimport type { T } from "yaml";',
    "src/cli/a.ts": 'export { b } from "./b.ts";',
    "src/cli/b.ts": 'import { defineCommand } from "citty";\nimport "./a.ts";',
    "src/cli/run.ts": 'import "consola";',
  };
  const reached = reach(["src/main.ts"], (path) => files[path] ?? null);
  expect([...reached.keys()]).toEqual(["src/main.ts", "src/cli/a.ts", "src/cli/b.ts", "citty"]);
  expect(chain(reached, "citty")).toBe("src/main.ts > src/cli/a.ts > src/cli/b.ts > citty");
});
