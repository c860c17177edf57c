/** How a value from a settings file looks in a message: one short line without control characters. */
import { escapeControls } from "../core/visible.ts";

/** Longest piece of a value that a message repeats, in characters. */
const LONGEST = 60;

/** What was found, in words: `"abc"`, `5`, `true`, `nothing`, `a list`, `a mapping`. */
export function found(value: unknown): string {
  if (typeof value === "string") return `"${shown(value)}"`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (value === null || value === undefined) return "nothing";
  return Array.isArray(value) ? "a list" : "a mapping";
}

/** Text made safe for a terminal and cut to 60 characters, or as many as told. */
export function shown(text: string, longest = LONGEST): string {
  const cut = text.length > longest ? `${text.slice(0, longest).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
  return escapeControls(cut);
}
