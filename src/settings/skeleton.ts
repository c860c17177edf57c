/** The file that `init` writes: every setting with its sentence, all commented out, so that it means what no file means. */
import { SETTINGS, type Setting } from "./reference.ts";

const WIDTH = 110;

const HEAD = `# Settings of outbox. A line without # is in force; all others show the default or an example.
# To deliver anything, dispatch.notify_template must name a command. Then:
#   outbox config check    says whether this file is right
#   outbox config show     says what holds, and where it comes from
`;

/** The whole text. */
export function skeleton(): string {
  return `${HEAD}${SETTINGS.filter(hasLine).map(entry).join("")}`;
}

/** A mapping by name is one line with an example; what may stand in it is told by its sentence. */
function hasLine(setting: Setting): boolean {
  return !setting.path.includes("*");
}

function entry(setting: Setting): string {
  const depth = setting.path.length - 1;
  const indent = "  ".repeat(depth);
  const about = wrapped(setting.about, WIDTH - indent.length - 2).map((line) => `${indent}# ${line}\n`);
  const name = setting.path.at(-1) ?? "";
  const value = setting.example ?? setting.unset;
  // Headings are in force, so that a setting below can be switched on alone; an empty one changes nothing.
  const line = value === null ? `${indent}${name}:\n` : `${indent}# ${name}: ${value}\n`;
  return `${depth === 0 ? "\n" : ""}${about.join("")}${line}`;
}

function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last !== "" && last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}
