/**
 * Durations as people write them: `90s`, `1h30m`, `250ms`, `0`. Numbers with units, joined; a bare number is refused,
 * because seconds and milliseconds would be guessed apart wrongly sooner or later.
 */
import { OutboxError } from "./errors.ts";

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNIT_MS;

/** Longest duration accepted: a hundred years. Keeps every sum of times finite and printable. */
export const MAX_DURATION_MS = 36_500 * UNIT_MS.d;

/**
 * Reads a duration.
 * @returns milliseconds, a whole number, 0 or more
 * @throws OutboxError `usage`
 * @example parseDuration("1h30m") === 5_400_000
 */
export function parseDuration(text: string): number {
  const trimmed = text.trim();
  if (trimmed === "0") return 0;
  if (/^[0-9]+(\.[0-9]+)?$/.test(trimmed))
    throw new OutboxError("usage", `"${text}" is a number without a unit`, `write ${trimmed}s, ${trimmed}m, ${trimmed}h or ${trimmed}d`);
  const part = /([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)/y;
  let ms = 0;
  while (part.lastIndex < trimmed.length) {
    const at = part.lastIndex;
    const match = part.exec(trimmed);
    if (match === null || at === trimmed.length) throw notADuration(text);
    ms += Number(match[1]) * UNIT_MS[match[2] as Unit];
    if (part.lastIndex === trimmed.length) break;
  }
  if (trimmed === "") throw notADuration(text);
  if (ms > MAX_DURATION_MS) throw new OutboxError("usage", `"${text}" is longer than a hundred years`, "use a shorter duration");
  return Math.round(ms);
}

function notADuration(text: string): OutboxError {
  return new OutboxError("usage", `"${text}" is not a duration`, "write numbers with units ms, s, m, h or d, for example 1h30m");
}

/**
 * Writes a duration the way `parseDuration` reads it, exactly.
 * @example formatDuration(5_400_000) === "1h30m"
 */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms));
  if (rest === 0) return "0s";
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"] as const) {
    const count = Math.floor(rest / UNIT_MS[unit]);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * UNIT_MS[unit];
  }
  return text;
}

/**
 * Writes a duration for a table: the largest unit that fits, and the next one when it says something.
 * @example shortDuration(5_461_000) === "1h31m"
 */
export function shortDuration(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < UNIT_MS.s) return `${Math.round(abs)}ms`;
  if (abs < 10 * UNIT_MS.s) return `${Math.floor(abs / 100) / 10}s`;
  const seconds = Math.floor(abs / UNIT_MS.s);
  if (seconds < 60) return `${seconds}s`;
  const pairs = [
    [86_400, "d", 3_600, "h"],
    [3_600, "h", 60, "m"],
    [60, "m", 1, "s"],
  ] as const;
  for (const [big, bigUnit, small, smallUnit] of pairs) {
    if (seconds < big) continue;
    const low = Math.floor((seconds % big) / small);
    return `${Math.floor(seconds / big)}${bigUnit}${low > 0 ? `${low}${smallUnit}` : ""}`;
  }
  return `${seconds}s`;
}
