/** How a value from a settings file looks in a message: one short line without control characters. */

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
  return escaped(cut);
}

/** Control characters, line separators and direction marks as escapes, so that a message cannot rewrite the screen. */
export function escaped(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu, (character) =>
    character === "\n" ? "\\n" : character === "\t" ? "\\t" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
