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
const ITEM = String.raw`(?:"|--?(?:[a-z][\w-]*)?(?=[ ,\]]|$)|${NUMBER}(?![\w./-])|${WORD})`;
const NAME = String.raw`(?!${LOADED}:)[A-Za-z][\w-]*`;

const TEXT = /"[^"\\\n]*"|'[^'\n]*'/g;
const COMMENT = /(^| )#.*$/gm;
const LIST = new RegExp(String.raw`\[ *(?:${ITEM}(?: *, *${ITEM})*)? *\]`, "gim");
const ENTRY = String.raw`${NAME}: +${ITEM}`;
const MAPPING = new RegExp(String.raw`\{ *(?:${ENTRY}(?: *, *${ENTRY})*)? *\}`, "gim");
const LINE = new RegExp(String.raw`^( *)(?:(${NAME}):(?: +(${ITEM}))?|- +${ITEM}) *$`, "i");
const NAMES = new RegExp(String.raw`${NAME}:(?= |$)`, "gim");

/**
 * Whether `value`, which one parser made of `text`, is what any would.
 * @param text as the file has it
 */
export function isSimple(text: string, value: unknown): boolean {
  // The others have rules of their own for tabs, line ends and what is not ASCII.
  if (!/^[\x20-\x7e\n]*$/.test(text)) return false;
  const bare = text.replace(TEXT, '"').replace(COMMENT, "");
  // Of a name that stands twice the parser kept one.
  return isBlock(withoutFlow(bare).split("\n")) && (bare.match(NAMES)?.length ?? 0) === namesIn(value);
}

/** Each collection within a line in place of which one item stands, from the innermost outwards. */
function withoutFlow(text: string): string {
  const less = text.replace(LIST, '"').replace(MAPPING, '"');
  return less === text ? text : withoutFlow(less);
}

/** Whether every line is a name or an item at a depth that the lines before it have made. */
function isBlock(lines: readonly string[]): boolean {
  const open: { readonly depth: number; readonly isList: boolean }[] = [{ depth: 0, isList: false }];
  let mayOpen = false;
  for (const line of lines) {
    if (/^ *$/.test(line)) continue;
    const [whole, indent = "", name, item] = LINE.exec(line) ?? [];
    if (whole === undefined) return false;
    const [depth, isList] = [indent.length, name === undefined];
    if (mayOpen && depth > (open.at(-1)?.depth ?? 0)) open.push({ depth, isList });
    while ((open.at(-1)?.depth ?? 0) > depth) open.pop();
    const here = open.at(-1);
    if (here?.depth !== depth || here.isList !== isList) return false;
    mayOpen = name !== undefined && item === undefined;
  }
  return true;
}

function namesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, each) => sum + namesIn(each), own);
}
