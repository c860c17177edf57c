/** Variables for a command, as a setting. */
import { kind, mappingOf, words } from "./kinds.ts";

export function environment() {
  const json = { type: "object", additionalProperties: { type: "string" }, propertyNames: { pattern: "^(?!OUTBOX_)[^=]+$" } };
  return kind<Readonly<Record<string, string>>>({ words: "names with values", json, mayBeNothing: true }, (value, fail) => {
    const mapping = mappingOf(value, fail);
    if (mapping === undefined) return undefined;
    // Without a prototype, `env.constructor` is what the file says it is: nothing.
    const variables = Object.create(null) as Record<string, string>;
    for (const [name, given] of Object.entries(mapping)) {
      const wrong = wrongName(name);
      if (wrong !== null) fail(wrong, [name], "key");
      const text = given === null ? fail('has no value; for an empty one write ""', [name]) : words(given, fail, [name]);
      if (text !== undefined) variables[name] = text;
    }
    return variables;
  });
}

function wrongName(name: string): string | null {
  if (name.startsWith("OUTBOX_")) return "is a name that outbox sets itself; choose another";
  return name === "" || /[=\0]/.test(name) || !name.isWellFormed() ? "is no name for a variable" : null;
}
