/**
 * Writes what is data in the code into the documents, between markers: `npm run docs` after a change of the lifecycle, the
 * settings or the exit codes. With `--check` it writes nothing and fails where a document is stale; the check calls it so.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { performanceTable, proofTable } from "./docs-figures.ts";
import { commandTable, exitCodeTable, lifecycleDiagram, lifecycleTable, settingsTable } from "./docs-sections.ts";

const root = join(import.meta.dir, "..");
const { check: checkOnly } = parseArgs({ options: { check: { type: "boolean", default: false } } }).values;

/** Document → marker → what stands between `<!-- marker -->` and `<!-- /marker -->`. */
const SECTIONS: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  "ARCHITECTURE.md": { "lifecycle-diagram": lifecycleDiagram, "lifecycle-table": lifecycleTable },
  "README.md": {
    commands: commandTable,
    settings: settingsTable,
    "exit-codes": exitCodeTable,
    proof: proofTable,
    performance: performanceTable,
  },
};

let stale = 0;
for (const [document, sections] of Object.entries(SECTIONS)) {
  const path = join(root, document);
  const before = readFileSync(path, "utf8");
  let after = before;
  for (const [marker, print] of Object.entries(sections)) after = fill(document, after, marker, print());
  if (after === before) continue;
  stale += 1;
  if (checkOnly) console.error(`docs: ${document} is stale; run \`npm run docs\``);
  else writeFileSync(path, after);
}
if (checkOnly && stale > 0) process.exitCode = 1;

function fill(document: string, text: string, marker: string, content: string): string {
  const [open, close] = [`<!-- ${marker} -->`, `<!-- /${marker} -->`];
  const [head, rest, surplus] = text.split(open);
  const [, tail, surplusTail] = rest?.split(close) ?? [];
  if (head === undefined || tail === undefined || surplus !== undefined || surplusTail !== undefined)
    throw new Error(`docs: ${document} must hold ${open} and ${close}, each once`);
  return `${head}${open}\n\n${content.trim()}\n\n${close}${tail}`;
}
