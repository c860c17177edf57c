/** Errors and outputs may have many lines; a log or a list has room for the first. */

/** Characters of it that are kept. */
const LONGEST = 200;

/**
 * The first line, cut; what is left out is marked. The whole text is in the history.
 * @example firstLine("exit 1: no route\\nsee log") === "exit 1: no route …"
 */
export function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length > LONGEST || line.length < text.length ? `${line.slice(0, LONGEST).replace(/[\uD800-\uDBFF]$/, "")} …` : line;
}
