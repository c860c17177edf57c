/** How things are said: JSON lines, tables, sentences. Stored text never reaches a terminal without `escapeControls`. */
import { shortDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import { CONTROLS, escapeControls } from "../core/visible.ts";

export { escapeControls };

/** One JSON line. Control characters that JSON lets through are escaped too; what a parser reads stays the same. */
export function jsonLine(value: unknown): string {
  const text = JSON.stringify(value).replace(CONTROLS, (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
  return `${text}\n`;
}

/** The line for a trouble: `outbox: WHAT; HINT`. Always one line. */
export function complaint(error: unknown): string {
  const { message, hint } =
    error instanceof OutboxError
      ? error
      : { message: `this should not happen: ${error instanceof Error ? error.message : String(error)}`, hint: "please report it" };
  return escapeControls(`outbox: ${shortened(message)}${hint === "" ? "" : `; ${hint}`}`);
}

/** What somebody typed may be long; what is said of it stays readable. */
export function shortened(text: string): string {
  if (text === "") return '""';
  return text.length <= LONGEST_SAID ? text : `${text.slice(0, LONGEST_SAID).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
const LONGEST_SAID = 1_500;

export interface Column {
  readonly title: string;
  /** Numbers stand on the right. */
  readonly right?: true;
  /** On a narrow terminal this column is cut, the widest first; the others never are. */
  readonly elastic?: true;
}

export interface TableStyle {
  /** Width to fit; null: never cut. */
  readonly columns: number | null;
  readonly color: boolean;
}

/** Narrowest that an elastic column becomes: where there is room, and where there is none. From 60 columns on every list fits. */
const LEAST_WIDTHS = [8, 4];
const GAP = "  ";

/** Lays out rows under a header. Cells are escaped here; widths are those of a terminal (wide characters count two). */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], style: TableStyle): string {
  const cells = rows.map((row) => columns.map((_, at) => escapeControls(row[at] ?? "")));
  const natural = columns.map((column, at) =>
    Math.max(Bun.stringWidth(column.title), ...cells.map((row) => Bun.stringWidth(row[at] ?? ""))),
  );
  const widths = style.columns === null ? natural : fit(natural, columns, style.columns);
  const line = (row: readonly string[]): string =>
    columns
      .map((column, at) => pad(cut(row[at] ?? "", widths[at] ?? 0), widths[at] ?? 0, column.right === true))
      .join(GAP)
      .trimEnd();
  const header = line(columns.map((column) => column.title));
  return [style.color ? bold(header) : header, ...cells.map(line)].map((text) => `${text}\n`).join("");
}

function fit(natural: readonly number[], columns: readonly Column[], width: number): readonly number[] {
  return LEAST_WIDTHS.reduce((widths, least) => narrowed(widths, columns, width, least), natural);
}

/** Takes single columns off the widest elastic one until all fit, or nothing more can be taken. */
function narrowed(before: readonly number[], columns: readonly Column[], width: number, least: number): readonly number[] {
  const widths = [...before];
  let surplus = widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1)) - width;
  for (; surplus > 0; surplus--) {
    let widest = -1;
    for (const [at, column] of columns.entries()) {
      const own = widths[at] ?? 0;
      if (column.elastic === true && own > least && (widest === -1 || own > (widths[widest] ?? 0))) widest = at;
    }
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/** Cuts to a width in terminal columns, never through a character, and marks the cut. */
export function cut(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text;
  let kept = "";
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (Bun.stringWidth(kept + segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

function pad(text: string, width: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, width - Bun.stringWidth(text)));
  return right ? space + text : text + space;
}

export function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`;
}

export function dim(text: string): string {
  return `\u001b[2m${text}\u001b[22m`;
}

/**
 * How far away an instant is, as a table says it.
 * @example relative(now + 90, now) === "in 1m30s"
 */
export function relative(epochS: number, now: number): string {
  const ms = (epochS - now) * 1_000;
  if (Math.abs(ms) < 500) return "now";
  return ms > 0 ? `in ${shortDuration(ms)}` : `${shortDuration(ms)} ago`;
}

/** @example count(1, "row") === "1 row" */
export function count(number: number, singular: string, plural = `${singular}s`): string {
  return `${number} ${number === 1 ? singular : plural}`;
}
