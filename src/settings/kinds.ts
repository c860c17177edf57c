/**
 * The kinds of values that settings have. Each is a valibot schema from what YAML gave to what the program uses, with the
 * fragment of JSON Schema that says the same to an editor. A message continues the name of the setting: `is 0, must be …`.
 */
import * as v from "valibot";
import { formatDuration, parseDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import { formatSize, parseSize } from "./size.ts";
import { nearest } from "../core/nearest.ts";
import { found, shown } from "./shown.ts";

export type Key = string | number;
export type JsonFragment = Readonly<Record<string, unknown>>;
/** Notes one problem of the value, or of what lies at `path` inside it; `key`: of the last name in it, not of its value. */
export type Fail = (message: string, path?: readonly Key[], of?: "key" | "value") => undefined;

/** What the reference and the JSON Schema know of a kind. A section has `entries`, a mapping by free names `each`. */
export interface Kind {
  /** In words: `a duration`. */
  readonly words: string;
  readonly json: JsonFragment;
  readonly entries?: v.ObjectEntries;
  readonly each?: v.GenericSchema;
  /** A mapping may be nothing: `run:` with all its lines commented out. */
  readonly mayBeNothing?: true;
}

/** A schema from anything to T. `read` answers undefined after it has called `fail`. */
export function kind<T>(about: Kind, read: (value: unknown, fail: Fail) => T | undefined) {
  return v.pipe(
    v.unknown(),
    v.rawTransform<unknown, T>(({ dataset, addIssue, NEVER }) => {
      const fail: Fail = (message, path = [], of = "value") => {
        const [first, ...rest] = path.map((key) => ({ type: "unknown" as const, origin: of, input: dataset.value, key, value: undefined }));
        addIssue(first === undefined ? { message } : { message, path: [first, ...rest] });
        return undefined;
      };
      const answer =
        dataset.value === null && about.mayBeNothing !== true
          ? fail("has no value; give it one, or take the line out")
          : read(dataset.value, fail);
      return answer ?? NEVER;
    }),
    v.metadata({ kind: about }),
  );
}

/** A duration as `core/duration` reads it, in milliseconds; the number 0 needs no unit. */
export function duration(limits: { readonly minMs: number; readonly maxMs: number }) {
  const json = { type: ["string", "integer"], pattern: "^\\s*(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+)\\s*$", maximum: 0, minimum: 0 };
  return kind<number>({ words: "a duration", json }, (value, fail) => {
    if (typeof value !== "string" && typeof value !== "number") return fail(`is ${found(value)}, must be a duration such as 90s or 1h30m`);
    const ms = attempt(() => parseDuration(String(value)), fail);
    if (ms === undefined) return undefined;
    if (ms < limits.minMs) return fail(`is ${found(value)}, must be at least ${formatDuration(limits.minMs)}`);
    if (ms > limits.maxMs) return fail(`is ${found(value)}, must be at most ${formatDuration(limits.maxMs)}`);
    return ms;
  });
}

/** A number of bytes: `1MiB`, `8KiB`, `512B`, or a bare number. */
export function size(limits: { readonly min: number; readonly max: number }) {
  const json = { type: ["string", "integer"], pattern: "^\\s*[0-9]+(\\.[0-9]+)?\\s*([KMG]i)?B\\s*$|^\\s*[0-9]+\\s*$", minimum: limits.min };
  return kind<number>({ words: "a size", json }, (value, fail) => {
    if (typeof value !== "string" && typeof value !== "number") return fail(`is ${found(value)}, must be a size such as 8KiB or 1MiB`);
    const bytes = attempt(() => parseSize(String(value)), fail);
    if (bytes === undefined) return undefined;
    if (bytes < limits.min) return fail(`is ${found(value)}, must be at least ${formatSize(limits.min)}`);
    if (bytes > limits.max) return fail(`is ${found(value)}, must be at most ${formatSize(limits.max)}`);
    return bytes;
  });
}

export function whole(limits: { readonly min: number; readonly max: number }) {
  const json = { type: "integer", minimum: limits.min, maximum: limits.max };
  const must = `must be a whole number from ${limits.min} to ${limits.max}`;
  return kind<number>({ words: "a whole number", json }, (value, fail) =>
    isWhole(value, limits) ? value : fail(`is ${found(value)}, ${must}${unquote(value)}`),
  );
}

export function fraction() {
  const json = { type: "number", minimum: 0, maximum: 1 };
  return kind<number>({ words: "a number from 0 to 1", json }, (value, fail) =>
    typeof value === "number" && value >= 0 && value <= 1
      ? value
      : fail(`is ${found(value)}, must be a number from 0 to 1${unquote(value)}`),
  );
}

export function oneOf<const T extends string>(words: readonly T[]) {
  const choices = words.join(", ").replace(/, ([^,]*)$/, " or $1");
  return kind<T>({ words: choices, json: { enum: words } }, (value, fail) => {
    const known = words.find((word) => word === value);
    if (known !== undefined) return known;
    const close = typeof value === "string" ? nearest(value, words) : null;
    return fail(`is ${found(value)}, must be ${choices}${close === null ? "" : `; did you mean ${close}?`}`);
  });
}

/** The name of a database file, as written. */
export function path() {
  return kind<string>({ words: "a path", json: { type: "string", minLength: 1 } }, (value, fail) => {
    const text = words(value, fail);
    if (text === undefined) return undefined;
    if (text === "") return fail("is empty, must be the path of a file");
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return fail(`is ${found(text)}, an address; a database is a file`);
    if (text === ":memory:") return fail('is ":memory:", which nobody could read again; a database is a file');
    if (/(^|\/)\.{0,2}$/.test(text)) return fail(`is ${found(text)}, a directory; name a file in it`);
    if (/^~[^/]*(\/|$)/.test(text) && !text.startsWith("~/"))
      return fail(`is ${found(text)}; only ~/ is understood, so write the whole path`);
    return text;
  });
}

/** Exit codes, sorted as written. */
export function exitCodes() {
  const limits = { min: 1, max: 255 };
  const json = { type: "array", items: { type: "integer", minimum: 1, maximum: 255 } };
  return kind<readonly number[]>({ words: "a list of exit codes", json }, (value, fail) => {
    if (!Array.isArray(value)) return fail(`is ${found(value)}, must be a list such as [64, 65]`);
    const items: readonly unknown[] = value;
    const good = items.filter((item) => isWhole(item, limits));
    for (const [index, item] of items.entries())
      if (!isWhole(item, limits)) fail(`is ${found(item)}, must be an exit code from 1 to 255${unquote(item)}`, [index]);
    return good.length === items.length ? good : undefined;
  });
}

/** Text without NUL and without half characters, either of which would not reach a command or a file as written. */
export function words(value: unknown, fail: Fail, at: readonly Key[] = []): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return fail(`is ${value}, must be text; write it in quotes`, at);
  if (typeof value !== "string") return fail(`is ${found(value)}, must be text`, at);
  if (value.includes("\0")) return fail("has a NUL character", at);
  if (!value.isWellFormed()) return fail("has half of a surrogate pair", at);
  return value;
}

/** A mapping with fixed keys. */
export function section<const E extends v.ObjectEntries>(entries: E) {
  const schema = v.object(entries);
  const names = Object.keys(entries);
  return kind<v.InferOutput<typeof schema>>({ words: "a mapping", json: {}, entries, mayBeNothing: true }, (value, fail) => {
    const mapping = mappingOf(value, fail);
    if (mapping === undefined) return undefined;
    for (const key of Object.keys(mapping)) if (!names.includes(key)) fail(unknownKey(key, names), [key], "key");
    const result = v.safeParse(schema, mapping);
    if (result.success) return result.output;
    for (const issue of result.issues) fail(issue.message, pathOf(issue), originOf(issue));
    return undefined;
  });
}

/** A mapping by names that the user chooses. `name` answers what is wrong with one, or null. */
export function named<S extends v.GenericSchema>(each: S, name: (name: string) => string | null) {
  const about: Kind = { words: "a mapping by name", json: {}, each, mayBeNothing: true };
  return kind<ReadonlyMap<string, v.InferOutput<S>>>(about, (value, fail) => {
    const mapping = mappingOf(value, fail);
    if (mapping === undefined) return undefined;
    const all = new Map<string, v.InferOutput<S>>();
    for (const [key, inner] of Object.entries(mapping)) {
      const wrong = name(key);
      if (wrong !== null) fail(wrong, [key], "key");
      const result = v.safeParse(each, inner);
      if (result.success) all.set(key, result.output);
      else for (const issue of result.issues) fail(issue.message, [key, ...pathOf(issue)], originOf(issue));
    }
    return all;
  });
}

/** Where in the value an issue lies. */
export function pathOf(issue: v.BaseIssue<unknown>): Key[] {
  return (issue.path ?? []).map((item) => (typeof item.key === "number" ? item.key : String(item.key)));
}

/** Whether the issue is with the name at its path or with the value there. */
export function originOf(issue: v.BaseIssue<unknown>): "key" | "value" {
  return issue.path?.at(-1)?.origin === "key" ? "key" : "value";
}

function unknownKey(key: string, names: readonly string[]): string {
  const close = nearest(key, names);
  return `is no setting${close === null ? "" : `; did you mean ${close}?`}`;
}

export function mappingOf(value: unknown, fail: Fail): Readonly<Record<string, unknown>> | undefined {
  if (value === null) return {};
  return isMapping(value) ? value : fail(`is ${found(value)}, must be a mapping: names, each with a colon and a value`);
}

/** Whether it is what YAML makes of `name: value` lines. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isWhole(value: unknown, limits: { readonly min: number; readonly max: number }): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= limits.min && value <= limits.max;
}

/** `"8"` is text: say that the quotes are the trouble. */
function unquote(value: unknown): string {
  return typeof value === "string" && /^\s*[0-9.]+\s*$/.test(value) ? "; take the quotes off" : "";
}

function attempt<T>(read: () => T, fail: Fail): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof OutboxError) return fail(`cannot be read: ${shown(error.message)}; ${error.hint}`);
    throw error;
  }
}
