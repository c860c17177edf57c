/**
 * Help, laid out from the table of commands by way of citty's command definitions. citty's own renderer knows no
 * groups, no width and no examples, and it colours pipes; so the layout is ours.
 */
import { type ArgsDef, type CommandDef, defineCommand } from "citty";
import { COMMANDS, GROUPS } from "./command.ts";
import { COMMON } from "./flags.ts";
import { EXIT_CODES } from "./exit.ts";
import type { Terminal } from "./io.ts";
import { bold } from "./output.ts";
import type { CommandSpec, FlagSpec } from "./spec.ts";

/** Wider lines are hard to read, and narrower ones hold no flag with its sentence. */
const [NARROWEST, WIDEST] = [40, 80];
const INDENT = "  ";
/** A column of sentences narrower than this goes below its labels. */
const LEAST_SENTENCE = 30;
/** Widest label that still has its sentence beside it. */
const WIDEST_LABEL = 24;

type Line = readonly [label: string, sentence: string];

type Printed = Pick<Terminal, "columns" | "color">;

interface Page {
  readonly title: (text: string) => string;
  readonly width: number;
}

function pageFor({ columns, color }: Printed): Page {
  return { title: color ? bold : plain, width: Math.max(NARROWEST, Math.min(columns ?? WIDEST, WIDEST)) };
}

/** What `outbox --help` prints. */
export function overview(terminal: Printed): string {
  const page = pageFor(terminal);
  const { title, width } = page;
  const widestCommand = Math.max(...COMMANDS.map((command) => command.name.length));
  const blocks = [
    ["outbox hands a message to your command, again and again, until it succeeds.", "What it accepted is on disk before it says yes."]
      .flatMap((line) => wrap(line, width))
      .join("\n"),
    `${title("Usage")}\n${INDENT}outbox COMMAND [flags]`,
    ...GROUPS.map((group) => section(group, commandLines(group), page, widestCommand)),
    section(
      "Common flags",
      [...flagLines(argsOf(COMMON)), ["-h, --help", "Print help, here or after a command"], ["--version", "Print the version"]],
      page,
    ),
    section(
      "Words",
      [
        ["ID", "32 hex digits, or the number that ls prints"],
        ["D", "a duration: 90s, 1h30m, 250ms"],
        ["T", "a time: epoch seconds, 2026-12-24T18:00:00Z, 2026-12-24, '2026-12-24 18:00', 18:00; for the past also how long ago: 2h"],
        ["FILE", "a path; - is stdin"],
      ],
      page,
    ),
    section("Exit codes", exitLines(EXIT_CODES.map((each) => each.code)), page),
    wrap("outbox help COMMAND explains a command and shows examples.", width).join("\n"),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

/** What `outbox COMMAND --help` prints. */
export function commandHelp(spec: CommandSpec, terminal: Printed): string {
  const page = pageFor(terminal);
  const { title, width } = page;
  const definition = toCitty(spec);
  const args = definition.args;
  const groupOf = (name: string): string => ({ ...COMMON, ...spec.flags })[name]?.group ?? "Flags";
  const flags = Object.entries(args).filter(([, arg]) => arg.type !== "positional");
  const groups = [...new Set(flags.map(([name]) => groupOf(name)))].toSorted((a, b) => rank(a) - rank(b));
  const words: Line[] = Object.entries(args).flatMap(([name, arg]) =>
    arg.type === "positional" ? [[name, arg.description ?? ""] as const] : [],
  );
  const label = labelWidth([...words, ...flagLines(args)]);
  const blocks = [
    wrap(`${spec.summary}.`, width).join("\n"),
    `${title("Usage")}\n${INDENT}${wrap(`outbox ${spec.usage}`, width - 2 * INDENT.length).join(`\n${INDENT}${INDENT}`)}`,
    ...(spec.about ?? []).map((paragraph) => wrap(paragraph, width).join("\n")),
    section("Arguments", words, page, label),
    ...groups.map((group) => {
      const lines = flagLines(Object.fromEntries(flags.filter(([name]) => groupOf(name) === group)));
      return section(group, group === COMMON_GROUP ? [...lines, ["-h, --help", "Print this help"]] : lines, page, label);
    }),
    `${title("Examples")}\n${examples(spec, width)}`,
    section("Exit codes", exitLines([0, 2, ...spec.exits]), page),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

const COMMON_GROUP = "Common";

/** The command's own groups come in the order of its table, unnamed flags after them, the common ones last. */
function rank(group: string): number {
  return group === COMMON_GROUP ? 2 : group === "Flags" ? 1 : 0;
}

function toCitty(spec: CommandSpec): CommandDef & { readonly args: ArgsDef } {
  const words = Object.fromEntries(
    spec.words.map(
      (word) =>
        [
          word.name,
          {
            type: "positional",
            description: word.about,
            required: word.min > 0,
          },
        ] as const,
    ),
  );
  const rest = spec.rest === undefined ? {} : { [spec.rest.name]: { type: "positional", description: spec.rest.about } as const };
  const args = { ...words, ...rest, ...argsOf({ ...spec.flags, ...COMMON }) } satisfies ArgsDef;
  return { ...defineCommand({ meta: { name: spec.name, description: spec.summary }, args }), args };
}

function argsOf(flags: Readonly<Record<string, FlagSpec>>): ArgsDef {
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [
      name,
      flag.kind === "boolean"
        ? { type: "boolean", description: flag.about }
        : { type: "string", description: flag.kind === "list" ? `${flag.about} (repeatable)` : flag.about, valueHint: flag.value },
    ]),
  );
}

function flagLines(args: ArgsDef): Line[] {
  return Object.entries(args).flatMap(([name, arg]) =>
    arg.type === "positional"
      ? []
      : [[arg.valueHint === undefined ? `--${name}` : `--${name} ${arg.valueHint}`, arg.description ?? ""] as const],
  );
}

function commandLines(group: string): Line[] {
  return COMMANDS.filter((command) => command.group === group).map((command) => [command.name, command.summary] as const);
}

function exitLines(codes: readonly number[]): Line[] {
  const wanted = new Set(codes);
  return EXIT_CODES.filter((each) => wanted.has(each.code)).map((each) => [String(each.code), each.sentence] as const);
}

/** The commands stay whole, to be copied. */
function examples(spec: CommandSpec, width: number): string {
  const comment = (about: string): string[] => wrap(about, width - INDENT.length - 2).map((line) => `${INDENT}# ${line}`);
  return spec.examples.flatMap(({ line, about }) => [...comment(about), `${INDENT}${line}`]).join("\n");
}

function labelWidth(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(([label]) => label.length).filter((width) => width <= WIDEST_LABEL));
}

function section(heading: string, lines: readonly Line[], { title, width: columns }: Page, widest = labelWidth(lines)): string {
  if (lines.length === 0) return "";
  // On a narrow terminal the sentences stand below all labels but the shortest.
  const width = columns - (INDENT.length + widest + 2) < LEAST_SENTENCE ? Math.min(widest, 2) : widest;
  const indent = INDENT.length + width + 2;
  const laidOut = lines.flatMap(([label, sentence]) => {
    const [first = "", ...rest] = wrap(sentence, columns - indent);
    const more = rest.map((line) => " ".repeat(indent) + line);
    return label.length > width
      ? [INDENT + label, " ".repeat(indent) + first, ...more]
      : [INDENT + label.padEnd(width + 2) + first, ...more];
  });
  return [title(heading), ...laidOut].join("\n");
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function plain(text: string): string {
  return text;
}
