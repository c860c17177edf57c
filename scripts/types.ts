/**
 * Writes types/, the declarations of the library door for programs of other projects, whose compiler need not know our settings:
 * `bun scripts/types.ts` after a change of what `src/index.ts` exports. With `--check` it writes nothing and fails when they are stale.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

const root = join(import.meta.dir, "..");
const target = join(root, "types");
const DOOR = "index.d.ts";

/** Name to text: the door and what it names. */
export function declarations(): ReadonlyMap<string, string> {
  const out = mkdtempSync(join(tmpdir(), "outbox-types-"));
  try {
    emit(out);
    const files = new Map<string, string>();
    const ahead = [DOOR];
    for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      if (files.has(name)) continue;
      const text = readFileSync(join(out, name), "utf8");
      // Only a compiler that is told so takes a name that ends in `.ts`.
      files.set(name, text.replaceAll(RELATIVE, '$1.js"'));
      for (const [, path = ""] of text.matchAll(RELATIVE)) ahead.push(`${join(dirname(name), path.slice(path.indexOf(".")))}.d.ts`);
    }
    return files;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** A relative import: from its quote to before its `.ts"`. */
const RELATIVE = /((?:from |import\()"\.{1,2}\/[^"]*)\.ts"/g;

function emit(out: string): void {
  const project = join(out, "tsconfig.json");
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    noCheck: true, // the linter does that
    stripInternal: true,
    rootDir: join(root, "src"),
    outDir: out,
    typeRoots: [join(root, "node_modules/@types")],
  };
  const files = [join(root, "src", "index.ts"), join(root, "src", "sql.d.ts")];
  writeFileSync(project, JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] }));
  const run = Bun.spawnSync([process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", project], { stdin: "ignore" });
  if (run.exitCode !== 0) throw new Error(`tsc failed\n${run.stdout.toString()}${run.stderr.toString()}`);
}

/** The same of what stands there. */
function standing(): ReadonlyMap<string, string> {
  try {
    const names = readdirSync(target, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
    return new Map(names.map((name) => [name, readFileSync(join(target, name), "utf8")]));
  } catch {
    return new Map();
  }
}

if (import.meta.main) {
  const fresh = declarations();
  if (!parseArgs({ options: { check: { type: "boolean" } } }).values.check) {
    rmSync(target, { recursive: true, force: true });
    for (const [name, text] of fresh) {
      mkdirSync(dirname(join(target, name)), { recursive: true });
      writeFileSync(join(target, name), text);
    }
  } else {
    const found = standing();
    const stale = [...new Set([...fresh.keys(), ...found.keys()])].filter((name) => fresh.get(name) !== found.get(name));
    if (stale.length > 0) {
      console.error(`types: ${stale.join(", ")} in types/ stale; run \`bun scripts/types.ts\``);
      process.exitCode = 1;
    }
  }
}
