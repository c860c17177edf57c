/**
 * Which files say the same to every parser of YAML: most that people write. They need no second, slower reader. It is a small part of
 * YAML on purpose: block mappings and lists, flow ones within a line, plain words, numbers and quoted text without escapes. No
 * anchor, tag, block text, word that some take for a truth value, nor anything else that a parser could have an opinion of its own on.
 */

/** Words that some parser takes for a truth value, a number or nothing. */
const LOADED = "(?:true|false|yes|no|on|off|y|n|null|nan|inf)";
/** A name, a path, an address: a colon in it stands between letters, or it would make a name of what is before it. */
const WORD = String.raw`(?!${LOADED}(?![\w./@:-]))(?:[A-Za-z]|(?:~|\.{1,2})?\/[\w.])(?:[\w./@-]|:(?=[\w./]))*`;
const NUMBER = String.raw`(?:0|[1-9]\d{0,8})(?:\.\d{1,8})?(?:ms|[smhd]|[KMG]i?B|B)?`;
/** Quoted text, and a collection once it has been looked at, stand as `"`. */
const ITEM = new RegExp(String.raw`^(?:"|--?(?:[a-z][\w-]*)?|${NUMBER}|${WORD})$`, "i");
const NAME = new RegExp(String.raw`^(?!${LOADED}$)[a-z][\w-]*$`, "i");

const TEXT = /"[^"\\\n]*"|'[^'\n]*'/g;
const COMMENT = /(^| )#.*$/gm;
/** A list or a mapping within a line that holds no other. */
const FLOW = /\[([^[\]{}\n]*)\]|\{([^[\]{}\n]*)\}/g;
const ENTRY = /^([\w-]+): +([^-].*)$/;
const LINE = /^( *)(?:([\w-]+):(?: +(.*?))?|- +(.*?)) *$/;

/**
 * Whether `value`, which one parser made of `text`, is what any would.
 * @param text as the file has it
 */
export function isSimple(text: string, value: unknown): boolean {
  // The others have rules of their own for tabs, line ends and what is not ASCII.
  if (!/^[\x20-\x7e\n]*$/.test(text)) return false;
  const flow = withoutFlow(text.replace(TEXT, '"').replace(COMMENT, ""));
  const names = namesOfBlock(flow.text.split("\n"));
  // Of a name that stands twice the parser kept one.
  return names !== null && names + flow.names === namesIn(value);
}

/** The text with one item in place of each collection within a line, from the innermost outwards, and how many names stood in them. */
function withoutFlow(text: string): { readonly text: string; readonly names: number } {
  let names = 0;
  const less = text.replace(FLOW, (whole: string, list?: string, mapping?: string) => {
    const parts = (list ?? mapping ?? "").split(",").map((part) => part.trim());
    if (parts.length === 1 && parts[0] === "") return '"';
    if (!parts.every(list === undefined ? isEntry : isItem)) return whole;
    names += list === undefined ? parts.length : 0;
    return '"';
  });
  if (less === text) return { text, names };
  const rest = withoutFlow(less);
  return { text: rest.text, names: names + rest.names };
}

function isItem(text: string): boolean {
  return ITEM.test(text);
}

function isEntry(text: string): boolean {
  const [, name, item] = ENTRY.exec(text) ?? [];
  return name !== undefined && item !== undefined && NAME.test(name) && isItem(item);
}

/** How many lines have a name; null where a line is neither a name nor an item at a depth that the lines before it have made. */
function namesOfBlock(lines: readonly string[]): number | null {
  const open: { readonly depth: number; readonly isList: boolean }[] = [{ depth: 0, isList: false }];
  let mayOpen = false;
  let names = 0;
  for (const line of lines) {
    if (/^ *$/.test(line)) continue;
    const [whole, indent = "", name, value = "", listed] = LINE.exec(line) ?? [];
    const item = listed ?? value;
    if (whole === undefined || (name !== undefined && !NAME.test(name))) return null;
    if ((name === undefined || item !== "") && !isItem(item)) return null;
    const [depth, isList] = [indent.length, name === undefined];
    if (mayOpen && depth > (open.at(-1)?.depth ?? 0)) open.push({ depth, isList });
    while ((open.at(-1)?.depth ?? 0) > depth) open.pop();
    const here = open.at(-1);
    if (here?.depth !== depth || here.isList !== isList) return null;
    mayOpen = name !== undefined && item === "";
    names += name === undefined ? 0 : 1;
  }
  return names;
}

function namesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, each) => sum + namesIn(each), own);
}
