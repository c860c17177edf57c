/**
 * Settings without the slow parser where that can be: Bun's own, and the same schema. `enqueue` and `revive` must start fast and take
 * what it makes of any file (repeated keys pass, the last one holds); all other commands only of a simple one, else the `yaml` package
 * has the word. It alone words an error.
 */
import { openSource } from "./locate.ts";
import { interpret } from "./resolve.ts";
import type { Choice, Loaded } from "./settings.ts";
import { isSimple } from "./simple.ts";

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

/**
 * Settings for all other commands, which refuse whatever the `yaml` package refuses. It is not asked about a file of which every
 * parser makes the same: to load it takes longer than to list messages.
 * @throws OutboxError as `readSettings`
 */
export async function readStrictly(choice: Choice): Promise<Loaded> {
  const source = openSource(choice);
  const value = source.text === null ? undefined : parse(source.text);
  const quick = source.text === null || isSimple(source.text, value) ? interpret(value, source.place) : null;
  if (quick !== null && "settings" in quick) return { settings: quick.settings, file: source.file, origin: source.origin };
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
