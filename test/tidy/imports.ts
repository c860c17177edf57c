/** What a source file imports, found by pattern: quick, and it sees type imports, which a bundler drops. */
import { dirname, join } from "node:path";

export interface Import {
  /** A path from the root (`src/core/errors.ts`), or the name of a package or built-in module. */
  readonly target: string;
  /** `type` is gone at run time; `lazy` is an `import()`, which loads nothing until it is called. */
  readonly how: "value" | "type" | "lazy";
}

/** Static imports and re-exports begin a line; the words between hold no quote and no semicolon. */
const STATIC = /^(?:import|export)\s+(type\s+(?!from\b))?(?:[^"'`;]*?\bfrom\s*)?["']([^"'\n]+)["']/gm;
const LAZY = /\b(typeof\s+)?import\(\s*["'`]([^"'`\n]+)["'`]/g;

export function importsOf(path: string, text: string): Import[] {
  const code = withoutComments(text);
  const target = (name: string): string => (name.startsWith(".") ? join(dirname(path), name) : name);
  return [
    ...code
      .matchAll(STATIC)
      .map((match) => ({ target: target(match[2] ?? ""), how: match[1] === undefined ? ("value" as const) : ("type" as const) })),
    ...code
      .matchAll(LAZY)
      .map((match) => ({ target: target(match[2] ?? ""), how: match[1] === undefined ? ("lazy" as const) : ("type" as const) })),
  ];
}

/**
 * All that is loaded when one of `entries` is, through value imports alone.
 * @param read the text of a path from the root; null for what is no source file
 * @returns target → the file that imports it, so that the way there can be told
 */
export function reach(entries: readonly string[], read: (path: string) => string | null): ReadonlyMap<string, string> {
  const from = new Map<string, string>(entries.map((entry) => [entry, ""]));
  // A map visits what is added while it is walked.
  for (const path of from.keys()) {
    const text = read(path);
    if (text === null) continue;
    for (const { target, how } of importsOf(path, text)) if (how === "value" && !from.has(target)) from.set(target, path);
  }
  return from;
}

/** The chain of files that leads to `target`: `src/main.ts > src/cli/command.ts > citty`. */
export function chain(reached: ReadonlyMap<string, string>, target: string): string {
  const steps: string[] = [];
  for (let step = target; step !== ""; step = reached.get(step) ?? "") steps.unshift(step);
  return steps.join(" > ");
}

/** Keeps strings, whose text may look like a comment. */
function withoutComments(text: string): string {
  return text.replace(/("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, "$1");
}
