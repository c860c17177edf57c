/** The bytes of a settings file as text. Checked here and not by the two YAML parsers, which differ on it. */
import { OutboxError } from "../core/errors.ts";
import { escapeControls } from "../core/visible.ts";

/**
 * Decodes UTF-8. A byte order mark is dropped, and every line ends with a line feed.
 * @throws OutboxError `settings` for other bytes and for control characters, with line and column
 */
export function decode(bytes: Uint8Array, file: string): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    // What a lenient decoder replaced first is where the trouble begins.
    const lenient = new TextDecoder("utf-8").decode(bytes);
    throw new OutboxError("settings", `${at(file, lenient, lenient.indexOf("\ufffd"))} not UTF-8 text`, "save the file as UTF-8", {
      cause: error,
    });
  }
  // A carriage return that ends no line ends one for one parser and not for the other.
  const control = text.search(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]|\r(?!\n)/);
  // Bun's parser folds a quoted text wrongly where its line ends with CR LF (1.4.5).
  if (control === -1) return text.replaceAll("\r\n", "\n");
  const code = text.charCodeAt(control).toString(16).toUpperCase().padStart(4, "0");
  throw new OutboxError(
    "settings",
    `${at(file, text, control)} a control character (U+${code})`,
    "take it out, or write it as an escape in quotes",
  );
}

function at(file: string, text: string, index: number): string {
  const before = text.slice(0, Math.max(0, index)).split("\n");
  return `${escapeControls(file)}:${before.length}:${(before.at(-1) ?? "").length + 1}:`;
}
