/** What a benchmark answers, and how it is printed. */

/** One goal of the table in the brief of the project, and what was measured of it. */
export interface Line {
  readonly goal: number;
  readonly what: string;
  /** What was measured, and against what it is held; null: it could not be measured here, and `note` says why. */
  readonly value: number | null;
  readonly unit: "x" | "" | "ms" | "MiB" | "/s" | "%";
  /** The goal, null for a line that only informs. */
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Both sides of a ratio, the spread, what is missing. */
  readonly note: string;
}

export function isMet({ value, atMost, atLeast }: Line): boolean | null {
  if (atMost === undefined && atLeast === undefined) return null;
  if (value === null) return false;
  return (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
}

/** A table for people. */
export function table(lines: readonly Line[]): string {
  const rows = lines.map((line) => [String(line.goal), line.what, figure(line), bound(line), verdict(line), line.note]);
  const head = ["", "what", "is", "goal", "", "measured"];
  const widths = head.map((name, at) => (at === head.length - 1 ? 0 : Math.max(name.length, ...rows.map((row) => (row[at] ?? "").length))));
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function figure({ value, unit }: Line): string {
  if (value === null) return "-";
  const digits = value >= 100 ? 0 : unit === "" && Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === "x" || unit === "%" || unit === "" ? unit : ` ${unit}`}`;
}

export function bound({ atMost, atLeast, unit }: Line): string {
  const parts = [atLeast === undefined ? "" : `>= ${atLeast}`, atMost === undefined ? "" : `<= ${atMost}`].filter((part) => part !== "");
  return parts.length === 0 ? "" : `${parts.join(", ")}${unit === "x" || unit === "%" ? unit : ""}`;
}

export function verdict(line: Line): string {
  const met = isMet(line);
  return met === null ? "" : met ? "met" : "MISSED";
}
