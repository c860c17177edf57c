/** Texts that are stored: what none of them may hold, whatever their field. */

/** What is wrong with a stored text, or null. */
export function textProblem(text: string, limitBytes: number): string | null {
  if (text === "") return "is empty";
  if (text.includes("\0")) return "holds a NUL character";
  if (!text.isWellFormed()) return "is not valid Unicode (a lone surrogate)";
  if (bytesOf(text) > limitBytes) return `has ${bytesOf(text)} bytes; the limit is ${limitBytes}`;
  return null;
}

/** Length in bytes of UTF-8. */
export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
