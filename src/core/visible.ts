/** Text of others, made safe for a terminal. */

/** What moves a cursor, reorders text or ends a line: C0, DEL, C1, bidi controls, separators, the byte order mark, half characters. */
export const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/**
 * Makes control characters visible, so that stored text can neither move the cursor nor pretend to be another line.
 * @example escapeControls("a\u001b[2J") === "a\\x1b[2J"
 */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}
