/**
 * JSON text that keeps its form. A body is checked and then stored as it came: key order, digits of numbers and repeated
 * keys survive, so nothing here parses and prints it again.
 */

/** Deepest nesting accepted. SQLite's JSON functions stop at 1,000, Python's parser near there. */
export const MAX_DEPTH = 512;

/** What is wrong with this text as the JSON of one object, or null. */
export function objectProblem(text: string): string | null {
  if (text.startsWith("\ufeff")) return "starts with a byte order mark, which JSON does not allow";
  const flaw = scanFlaw(text);
  if (flaw !== null) return flaw;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return text.trim() === "" ? "is empty" : `is not JSON: ${parserWords(error)}`;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return `is ${nameOf(value)}, not an object`;
  return null;
}

/**
 * The top-level members of an object's text: each name with the exact text of its value.
 * The text must have passed `objectProblem`.
 * @returns pairs in the order of the text, repeated names included
 */
export function members(text: string): readonly { readonly name: string; readonly value: string }[] {
  const found: { name: string; value: string }[] = [];
  let at = skipSpace(text, text.indexOf("{") + 1);
  while (text[at] === '"') {
    const nameEnd = stringEnd(text, at);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = valueEnd(text, start);
    found.push({ name, value: text.slice(start, end).trimEnd() });
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return found;
}

/** Depth and surrogates, in one pass that needs no valid JSON: a bomb must not reach the recursive parser. */
function scanFlaw(text: string): string | null {
  if (!text.isWellFormed()) return "is not valid Unicode (a lone surrogate)";
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') inString = !inString;
    else if (inString) {
      if (char !== "\\") continue;
      const length = escapeLength(text, at);
      if (length === 0) return "has an escaped lone surrogate (half of a character), which is not valid Unicode";
      at += length - 1;
    } else if (char === "{" || char === "[") {
      depth += 1;
      if (depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
    } else if (char === "}" || char === "]") depth -= 1;
  }
  return null;
}

/** How many characters the escape at `at` takes, a surrogate pair being one; 0 for half of a pair. */
function escapeLength(text: string, at: number): number {
  const unit = escapedUnit(text, at);
  if (unit === null) return 2;
  if (unit < 0xd800 || unit > 0xdfff) return 6;
  const low = unit < 0xdc00 ? escapedUnit(text, at + 6) : null;
  return low !== null && low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

function escapedUnit(text: string, at: number): number | null {
  const digits = /^\\u([0-9a-fA-F]{4})$/.exec(text.slice(at, at + 6))?.[1];
  return digits === undefined ? null : Number.parseInt(digits, 16);
}

/** Index behind the closing quote of the string that opens at `at`; the text's length when it never closes. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === "\\") i += 1;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}

function valueEnd(text: string, start: number): number {
  if (text[start] === '"') return stringEnd(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = stringEnd(text, at) - 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (char === "," && depth === 0) return at;
  }
  return text.length;
}

/** The text without JSON's own white space at its ends. `trim()` would also take a byte order mark away. */
export function trimJson(text: string): string {
  const start = skipSpace(text, 0);
  let end = text.length;
  while (end > start && SPACE.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const SPACE = " \t\r\n";

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.includes(text.charAt(at))) at += 1;
  return at;
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return `a ${typeof value}`;
}

function parserWords(error: unknown): string {
  return error instanceof Error ? error.message.replace(/^JSON Parse error: /, "").slice(0, 120) : "unreadable";
}
