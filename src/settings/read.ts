/**
 * Settings for the commands that must start fast (`enqueue`, `revive`): Bun's own YAML parser and the same schema. Only to
 * word an error is the `yaml` package loaded. Repeated keys pass here (the last one holds); all other commands refuse them.
 */
import { openSource } from "./locate.ts";
import { interpret } from "./resolve.ts";
import type { Choice, Loaded } from "./settings.ts";

/**
 * Reads the settings that hold.
 * @throws OutboxError `settings` (wrong or missing file), `permission` (others could change it)
 */
export async function readSettings(choice: Choice): Promise<Loaded> {
  const source = openSource(choice);
  const quick = interpret(source.text === null ? undefined : parse(source.text), source.place);
  if ("settings" in quick) return { settings: quick.settings, file: source.file, origin: source.origin };
  // Where the parsers differ the stricter one has the last word, so it may also answer with settings.
  const { explain } = await import("./complain.ts");
  return explain(source);
}

/** What the parser makes of it; what it cannot read becomes a value that no schema accepts. */
function parse(text: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch {
    return "unreadable";
  }
}
