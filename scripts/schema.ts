/**
 * Writes src/settings/schema.json, the JSON Schema that `outbox config schema` prints, from the settings themselves:
 * `bun scripts/schema.ts` after a change there. With `--check` it writes nothing and fails when the file is stale.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ConversionConfig, type JsonSchema, toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import type { Kind } from "../src/settings/kinds.ts";
import { FILE } from "../src/settings/schema.ts";

const path = join(import.meta.dir, "../src/settings/schema.json");

/** The library copies all metadata; what is ours is taken out again. */
type Rest = Readonly<Record<string, unknown>> & { readonly kind?: Kind; readonly unset?: string; readonly example?: string };

/** A kind says itself how it looks in JSON Schema; sections and mappings are made of their parts. */
const config: ConversionConfig = {
  overrideAction: ({ valibotAction, jsonSchema }) => {
    if (valibotAction.type === "raw_transform") return jsonSchema;
    if (valibotAction.type !== "metadata") return undefined;
    const { kind, unset: _, example, ...rest } = jsonSchema as Rest;
    return {
      ...rest,
      ...(example === undefined ? {} : { examples: [Bun.YAML.parse(example)] }),
      ...(kind === undefined ? {} : fragment(kind)),
    } as JsonSchema;
  },
};

function fragment({ json, entries, each, mayBeNothing }: Kind): object {
  const parts = entries !== undefined ? bare(v.strictObject(entries)) : each !== undefined ? { additionalProperties: bare(each) } : json;
  return mayBeNothing === true ? { ...parts, type: ["object", "null"] } : parts;
}

function bare(schema: v.GenericSchema): object {
  const { $schema: _, ...rest } = toJsonSchema(schema, config);
  return rest;
}

export function settingsSchema(): string {
  const about = { $schema: "http://json-schema.org/draft-07/schema#", title: "Settings of outbox" };
  return `${JSON.stringify({ ...about, ...bare(FILE) }, null, 2)}\n`;
}

if (import.meta.main) {
  const fresh = settingsSchema();
  if (!parseArgs({ options: { check: { type: "boolean" } } }).values.check) writeFileSync(path, fresh);
  else if (readFileSync(path, "utf8") !== fresh) {
    console.error("schema: src/settings/schema.json is stale; run `bun scripts/schema.ts`");
    process.exitCode = 1;
  }
}
