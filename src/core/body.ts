/** The body of an envelope. It is found without being parsed, so that numbers, key order and repeated keys reach a command as they were written. */

/**
 * The exact text of the member `body`, or null when the envelope has none. Where the key is repeated the last one counts, as for
 * every JSON parser.
 * @example rawBody('{"kind":"k","body":{"n":9007199254740993}}') === '{"n":9007199254740993}'
 */
export function rawBody(envelope: string): string | null {
  let body: string | null = null;
  let depth = 0;
  let key = "";
  let string = "";
  let valueAt = 0;
  for (let at = 0; at < envelope.length; at += 1) {
    switch (envelope.charAt(at)) {
      case '"': {
        const end = endOfString(envelope, at);
        // Only a string of the outermost object can be one of its keys; the long ones inside the body are stepped over.
        if (depth === 1) string = envelope.slice(at, end);
        at = end - 1;
        break;
      }
      case ":":
        if (depth === 1) {
          key = string;
          valueAt = at + 1;
        }
        break;
      case "{":
      case "[":
        depth += 1;
        break;
      case "}":
      case "]":
      case ",":
        if (depth === 1 && key === '"body"') body = envelope.slice(valueAt, at).trim();
        if (depth === 1) key = "";
        if (envelope[at] !== ",") depth -= 1;
        break;
      default:
    }
  }
  return body;
}

/** The index after the quote that closes the string which opens at `at`. */
function endOfString(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** What `{text}` stands for: the string `text` of the body, else the whole body. */
export function textOf(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null && "text" in parsed && typeof parsed.text === "string") return parsed.text;
  } catch {
    // Only a row that did not come through `enqueue` has such a body. Its command gets it as it stands.
  }
  return body;
}
