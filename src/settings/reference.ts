/** Every setting as a list, read from the schema: for the README, the file that `init` writes, `config show` and hints. */
import * as v from "valibot";
import type { Key, Kind } from "./kinds.ts";
import { FILE } from "./schema.ts";

export interface Setting {
  /** Names from the top; `*` stands for a name that the user chooses. */
  readonly path: readonly string[];
  /** Its kind in words: `a duration`. */
  readonly words: string;
  /** What it does, in a sentence or two. */
  readonly about: string;
  /** Its default as it stands in a file (`10s`, `[]`), or in words; null: nothing unless set. */
  readonly unset: string | null;
  /** A value to show where there is no default to show; null: show the default. */
  readonly example: string | null;
  /** Whether it only holds other settings. */
  readonly section: boolean;
}

/** All settings, sections before what they hold, in the order of the schema. */
export const SETTINGS: readonly Setting[] = settingsIn(FILE, []);

/** Where a setting of this name does exist, for one that was written at the wrong level. */
export function elsewhere(path: readonly Key[]): string | null {
  const found = SETTINGS.find((setting) => setting.path.at(-1) === path.at(-1) && !setting.path.includes("*"));
  return found === undefined ? null : found.path.join(".");
}

function settingsIn(schema: v.GenericSchema, path: readonly string[]): Setting[] {
  const { entries, each } = kindOf(schema);
  const inner: (readonly [string, v.GenericSchema])[] =
    entries === undefined ? [] : Object.entries(entries).map(([name, entry]) => [name, entry as v.GenericSchema]);
  if (each !== undefined) inner.push(["*", each]);
  const own = path.length === 0 ? [] : [settingOf(schema, path)];
  return [...own, ...inner.flatMap(([name, entry]) => settingsIn(entry, [...path, name]))];
}

function settingOf(schema: v.GenericSchema, path: readonly string[]): Setting {
  const { words, entries, each } = kindOf(schema);
  const bare = unwrap(schema);
  const { unset: inWords, example } = v.getMetadata(bare);
  const written: unknown = v.getDefault(schema);
  const section = entries !== undefined || each !== undefined;
  return {
    path,
    words,
    about: v.getDescription(bare) ?? "",
    unset: typeof inWords === "string" ? inWords : written === undefined || section ? null : plain(written),
    example: typeof example === "string" ? example : null,
    section,
  };
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The kind that a schema was made from, through `optional` around it. */
export function kindOf(schema: v.GenericSchema): Kind {
  return v.getMetadata(unwrap(schema))["kind"] as Kind;
}

function unwrap(schema: v.GenericSchema): v.GenericSchema {
  return "wrapped" in schema ? (schema.wrapped as v.GenericSchema) : schema;
}
