/** What the built program loads before it can do its work. `tidy.test.ts` looks at the sources, this at what the bundler made. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
/**
 * Measured with bytecode: consola 6 ms, citty 2.3 ms, where an empty program takes 4 ms. The store is needed for what it hands in
 * alone; the schema as text is not.
 */
const SLOW = /node_modules\/(citty|consola|yaml)\/|src\/(dispatcher|transport)\/|src\/store\/(store|claim|place|prepare)\.ts$|\.sql$/;
/** Of Bun's own modules an enqueue needs these alone. node:fs takes 5 ms where an empty program takes 17. */
const NEEDED = ["bun:ffi", "bun:sqlite"];

const built = await Bun.build({
  entrypoints: [join(root, "src/main.ts")],
  root,
  target: "bun",
  format: "esm",
  splitting: true,
  metafile: true,
});
const outputs = built.metafile?.outputs ?? {};
const inputs = built.metafile?.inputs ?? {};

/** Every source file in the chunks that are loaded when those of `entries` are: the imports of a chunk, and theirs. */
function loadedBy(...entries: readonly string[]): readonly string[] {
  const isEntry = (path: string): boolean => entries.some((entry) => outputs[path]?.entryPoint?.endsWith(entry));
  const chunks = new Set(Object.keys(outputs).filter(isEntry));
  expect(chunks.size).toBe(entries.length);
  // A set visits what is added while it is walked.
  for (const chunk of chunks)
    for (const { kind, path } of outputs[chunk]?.imports ?? []) if (kind !== "dynamic-import" && path in outputs) chunks.add(path);
  return [...chunks].flatMap((chunk) => Object.keys(outputs[chunk]?.inputs ?? {}));
}

/** What is loaded for a command. `enqueue` is a part of the program itself. */
function loadedFor(command: string): readonly string[] {
  return command === "enqueue" ? loadedBy("src/main.ts") : loadedBy("src/main.ts", `src/cli/commands/${command}.ts`);
}

test.each(["enqueue", "revive", "ack"])("%s starts without anything that is slow to load", (name) => {
  const loaded = loadedFor(name);
  expect(loaded.filter((path) => SLOW.test(path))).toEqual([]);
  for (const file of ["parse.ts", `commands/${name}.ts`]) expect(loaded.some((path) => path.endsWith(`src/cli/${file}`))).toBe(true);
});

/** What Bun brings along itself, of the modules that these files import and do not put off. */
function builtIns(files: readonly string[]): readonly string[] {
  const imports = files.flatMap((file) => inputs[file]?.imports ?? []);
  return [...new Set(imports.filter(({ kind, path }) => kind === "import-statement" && !(path in inputs)).map(({ path }) => path))];
}

test.each(["enqueue", "revive"])("%s loads nothing of Node", (name) => {
  expect(builtIns(loadedFor(name)).toSorted()).toEqual(NEEDED);
});

test.each(["ls", "show"])("%s loads the whole store, and neither Node, the schema as text nor what words an unusual case", (name) => {
  const loaded = loadedBy("src/main.ts", "src/cli/command.ts", `src/cli/commands/${name}.ts`, "src/store/store.ts");
  expect(loaded.filter((path) => /node_modules\/(citty|consola|yaml)\/|src\/(dispatcher|transport)\/|\.sql$/.test(path))).toEqual([]);
  expect(loaded.filter((path) => /src\/store\/(place|prepare|trouble|diagnosis|migrate)\.ts$/.test(path))).toEqual([]);
  expect(builtIns(loaded).toSorted()).toEqual(NEEDED);
  expect(loaded.some((path) => path.endsWith("src/store/queries.ts"))).toBe(true);
});

test("run loads the dispatcher, so the look at the chunks sees what is there", () => {
  const loaded = loadedFor("run");
  expect(loaded.filter((path) => SLOW.test(path))).not.toEqual([]);
  expect(builtIns(loaded)).toContain("fs");
});
