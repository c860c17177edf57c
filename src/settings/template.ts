/**
 * The argv template as a setting. What would quietly not be replaced, or would let a stored value choose the program, is an
 * error here and not a surprise at three in the morning.
 */
import { PLACEHOLDERS, placeholderOf } from "../core/template.ts";
import { type Fail, isMapping, kind, words } from "./kinds.ts";
import { nearest } from "../core/nearest.ts";
import { found, shown } from "./shown.ts";

export function template() {
  const json = { type: "array", items: { type: "string" }, minItems: 1 };
  return kind<readonly string[]>({ words: "a list: a command and its arguments", json }, (value, fail) => {
    if (!Array.isArray(value)) return fail(`is ${found(value)}, must be a list such as [notify-seat, "{deliver_to}"]${unquoted(value)}`);
    if (value.length === 0) return fail("is an empty list; name the command to run");
    const items: readonly unknown[] = value;
    const elements = items.map((item, index) => elementOf(item, index, fail));
    return elements.every((element) => element !== undefined) ? elements : undefined;
  });
}

function elementOf(value: unknown, index: number, fail: Fail): string | undefined {
  if (isMapping(value)) return fail(`is ${found(value)}, must be text${unquoted(value)}`, [index]);
  if (value === null) return fail('is nothing, must be text; for an empty argument write ""', [index]);
  const text = words(value, fail, [index]);
  if (text === undefined) return undefined;
  const wrong = index === 0 ? wrongCommand(text) : wrongArgument(text);
  return wrong === null ? text : fail(wrong, [index]);
}

function wrongCommand(text: string): string | null {
  if (text.trim() === "") return "is empty; the first element is the command to run";
  const inside = placeholderIn(text);
  if (inside !== null)
    return `has ${inside}, but the command itself is never taken from a message; name it, and pass ${inside} as an argument`;
  if (/^\{\s*[\w-]+\s*\}$/.test(text)) return `is "${shown(text)}", must be the command to run`;
  if (text.startsWith("~") && !text.startsWith("~/")) return `is "${shown(text)}"; only ~/ is understood, so write the whole path`;
  if (text.endsWith("/")) return `is "${shown(text)}", a directory; name a command in it`;
  return null;
}

function wrongArgument(text: string): string | null {
  if (placeholderOf(text) !== null) return null;
  const word = /^\{\s*([\w-]+)\s*\}$/.exec(text)?.[1];
  if (word !== undefined) {
    const close = nearest(word, PLACEHOLDERS);
    return `is "${shown(text)}", no placeholder; ${close === null ? `the placeholders are ${PLACEHOLDERS.map((name) => `{${name}}`).join(" ")}` : `did you mean {${close}}?`}`;
  }
  const inside = placeholderIn(text);
  return inside === null ? null : `is "${shown(text)}", where ${inside} would not be replaced; make "${inside}" an element of its own`;
}

function placeholderIn(text: string): string | null {
  for (const [braced] of text.matchAll(/\{[a-z_]+\}/g)) if (placeholderOf(braced) !== null) return braced;
  return null;
}

/** YAML reads `{payload}` without quotes as a mapping from `payload` to nothing. */
function unquoted(value: unknown): string {
  if (!isMapping(value)) return "";
  const [only, ...others] = Object.entries(value);
  if (only === undefined || others.length > 0 || only[1] !== null) return "";
  return `; YAML reads {${shown(only[0])}} without quotes as a mapping, so write "{${shown(only[0])}}"`;
}
