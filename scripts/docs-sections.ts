/** What `docs.ts` prints: each section is a pure function of the data that the code itself reads. */
import * as v from "valibot";
import { COMMANDS, GROUPS } from "../src/cli/command.ts";
import { EXIT_CODES } from "../src/cli/exit.ts";
import { EDGES, shortReason } from "../src/core/lifecycle.ts";
import type { Kind } from "../src/settings/kinds.ts";
import { FILE } from "../src/settings/schema.ts";

/** The lifecycle as a Mermaid diagram, one arrow for each pair of statuses. */
export function lifecycleDiagram(): string {
  const arrows = new Map<string, string[]>();
  for (const { from, to, reason } of EDGES) {
    const arrow = `${from ?? "[*]"} --> ${to}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), shortReason(reason)]);
  }
  const lines = [...arrows].map(([arrow, reasons]) => `  ${arrow}: ${reasons.join(", ")}`);
  const left = new Set<string | null>(EDGES.map((edge) => edge.from));
  const ends = [...new Set(EDGES.map((edge) => edge.to))].filter((status) => !left.has(status));
  return ["```mermaid", "stateDiagram-v2", ...lines, ...ends.map((status) => `  ${status} --> [*]`), "```"].join("\n");
}

export function lifecycleTable(): string {
  return table(
    ["from", "to", "reason code", "by"],
    EDGES.map(({ from, to, reason, by }) => [from ?? "(none)", to, `\`${reason}\``, by]),
  );
}

/** Every command in the order of `outbox --help`, each group under its heading. */
export function commandTable(): string {
  const rows = GROUPS.flatMap((group) =>
    COMMANDS.filter((command) => command.group === group).map(({ usage, summary }, at) => [at === 0 ? group : "", `\`${usage}\``, summary]),
  );
  return table(["", "command", "what it does"], rows);
}

export function exitCodeTable(): string {
  return table(
    ["code", "meaning"],
    EXIT_CODES.map(({ code, sentence }) => [String(code), sentence]),
  );
}

export function settingsTable(): string {
  return table(["setting", "kind", "default", "meaning"], settingRows(FILE, ""));
}

/** One row for each setting that has a value; a section gives the rows of its entries, a route is told by its sentence. */
function settingRows(schema: v.GenericSchema, name: string): string[][] {
  const optional = v.isOfType("optional", schema) ? (schema as v.OptionalSchema<v.GenericSchema, unknown>) : null;
  const inner = optional?.wrapped ?? schema;
  const { kind, unset } = v.getMetadata(inner) as { readonly kind: Kind; readonly unset?: string };
  if (kind.entries !== undefined)
    return Object.entries(kind.entries).flatMap(([key, entry]) =>
      settingRows(entry as v.GenericSchema, name === "" ? key : `${name}.${key}`),
    );
  const value = unset ?? (optional?.default === undefined ? "" : shownDefault(optional.default));
  return [[`\`${name}\``, kind.words, value === "" ? "" : `\`${value}\``, v.getDescription(inner) ?? ""]];
}

function shownDefault(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
