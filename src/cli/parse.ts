/**
 * The strict parser: argv and the table of commands in, one decision out. Everything that could be a slip of the hand is
 * an error that says what to write instead; nothing is guessed, because a guessed flag sends a wrong message.
 */
import { invariant, OutboxError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import type { CommandSpec, FlagSpec } from "./spec.ts";

/** What the command line asks for. */
export type Parsed =
  | { readonly what: "run"; readonly command: CommandSpec; readonly args: Args }
  | { readonly what: "help"; readonly command: CommandSpec | null }
  | { readonly what: "version" }
  /** No command at all: help is right, and so is exit 2. */
  | { readonly what: "nothing" };

/** Flags and words of one command line. Asking for a flag that the command's table lacks is a bug. */
export interface Args {
  readonly words: readonly string[];
  /** What stands after `--`, where the command hands that on. */
  readonly rest: readonly string[];
  /** The value of a `string` flag. */
  text(flag: string): string | undefined;
  /** The values of a `list` flag, in the order given. */
  list(flag: string): readonly string[];
  /** Whether a `boolean` flag was given. */
  on(flag: string): boolean;
}

interface Table {
  readonly commands: readonly CommandSpec[];
  /** Allowed before the name of every command, and after it. */
  readonly common: Readonly<Record<string, FlagSpec>>;
}

/**
 * Reads a command line. The first error from the left wins; `--help` wins over what follows it.
 * @throws OutboxError `usage`
 */
export function parse(argv: readonly string[], table: Table): Parsed {
  const given = new Map<string, string[]>();
  let at = 0;
  for (; at < argv.length; at++) {
    const word = argv[at] ?? "";
    if (word === "--help" || word === "-h") return { what: "help", command: null };
    if (word === "--version") return alone(argv, at);
    if (!isOption(word)) break;
    const inAny =
      !Object.hasOwn(table.common, flagName(word)) && table.commands.some((command) => Object.hasOwn(command.flags, flagName(word)));
    if (inAny) throw new OutboxError("usage", `--${flagName(word)} stands before the command`, "write it after the command's name");
    at += take(argv, at, table.common, "", given);
  }
  const name = argv[at];
  if (name === undefined) return { what: "nothing" };
  const family = table.commands.filter((each) => each.name.startsWith(`${name} `));
  const command = family[0] === undefined ? findCommand(name, table.commands) : secondWord(name, argv[(at += 1)], family);
  if ("what" in command) return command;
  const flags = { ...table.common, ...command.flags };
  const words: string[] = [];
  let rest: readonly string[] | null = null;
  let literal = false;
  for (at++; at < argv.length; at++) {
    const word = argv[at] ?? "";
    if (literal || !isOption(word)) words.push(word);
    else if (word === "--" && command.rest !== undefined) {
      rest = argv.slice(at + 1);
      break;
    } else if (word === "--") literal = true;
    else if (word === "--help" || word === "-h") return { what: "help", command };
    else at += take(argv, at, flags, command.name, given);
  }
  if (command.rest !== undefined) checkRest(rest, command, command.rest.name);
  checkWords(words, command);
  checkExclusions(given, [["db", "source"], ...(command.excludes ?? [])]);
  return { what: "run", command, args: new GivenArgs(words, rest ?? [], flags, given) };
}

/** The command of a name of two words. `--help` in the place of the second explains the first that there is. */
function secondWord(name: string, word: string | undefined, family: readonly CommandSpec[]): CommandSpec | Parsed {
  const [first] = family;
  if ((word === "--help" || word === "-h") && first !== undefined) return { what: "help", command: first };
  if (word !== undefined && !isOption(word)) return findCommand(`${name} ${word}`, family);
  const names = family.map((each) => each.name).join(", ");
  throw new OutboxError("usage", `${name} is half of a command`, `write ${names}; see outbox ${first?.name ?? ""} --help`);
}

/** @throws OutboxError `usage`, with the nearest name */
export function findCommand(name: string, commands: readonly CommandSpec[]): CommandSpec {
  const found = commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  const near = nearest(
    name,
    commands.flatMap((command) => [command.name, ...command.name.split(" ").slice(0, 1)]),
  );
  // Of a name of two words the first alone is as near, and what is suggested can be run as it stands.
  const meant = commands.find(({ name: whole }) => whole === near || whole.startsWith(`${near} `))?.name ?? null;
  throw new OutboxError("usage", `unknown command ${quote(name)}`, meant === null ? "see outbox --help" : `did you mean ${meant}?`);
}

/** `-` is a word (stdin), and so is the empty string. */
function isOption(word: string): boolean {
  return word.length > 1 && word.startsWith("-");
}

function flagName(word: string): string {
  return /^--([^=]*)/.exec(word)?.[1] ?? word;
}

/** Takes the flag at `at`, and its value. Returns how many further words it used. */
function take(
  argv: readonly string[],
  at: number,
  flags: Readonly<Record<string, FlagSpec>>,
  command: string,
  given: Map<string, string[]>,
): number {
  const word = argv[at] ?? "";
  const name = flagName(word);
  const flag = word.startsWith("--") && Object.hasOwn(flags, name) ? flags[name] : undefined;
  if (flag === undefined) throw unknownFlag(word, name, flags, command);
  const equals = word.indexOf("=");
  const seen = given.get(name);
  if (flag.kind === "boolean") {
    if (equals !== -1) throw new OutboxError("usage", `--${name} takes no value`, `write --${name} alone`);
    if (seen !== undefined) throw new OutboxError("usage", `--${name} is given twice`, "give it once");
    given.set(name, []);
    return 0;
  }
  if (seen !== undefined && flag.kind === "string") throw new OutboxError("usage", `--${name} is given twice`, "give it once");
  const value = equals === -1 ? argv[at + 1] : word.slice(equals + 1);
  if (equals === -1) {
    if (value === undefined) throw new OutboxError("usage", `--${name} needs a value`, `write --${name} ${flag.value}`);
    if (isOption(value))
      throw new OutboxError(
        "usage",
        `--${name} needs a value, and ${quote(value)} looks like a flag`,
        `if it is the value, write --${name}=${value}`,
      );
  }
  if (value === "" && flag.mayBeEmpty !== true)
    throw new OutboxError("usage", `--${name} is empty`, `write --${name} ${flag.value}, or leave it out`);
  given.set(name, [...(seen ?? []), value ?? ""]);
  return equals === -1 ? 1 : 0;
}

function unknownFlag(word: string, name: string, flags: Readonly<Record<string, FlagSpec>>, command: string): OutboxError {
  const where = command === "" ? "" : ` of ${command}`;
  const help = `see outbox ${command === "" ? "" : `${command} `}--help`;
  if (!word.startsWith("--")) {
    const meant = nearest(word.slice(1), Object.keys(flags));
    return new OutboxError(
      "usage",
      `unknown flag ${quote(word)}${where}`,
      meant === null ? `a word that begins with - goes after --; ${help}` : `did you mean --${meant}?`,
    );
  }
  const meant = nearest(name, Object.keys(flags));
  return new OutboxError("usage", `unknown flag --${name}${where}`, meant === null ? help : `did you mean --${meant}?`);
}

function checkWords(words: readonly string[], command: CommandSpec): void {
  const most = command.words.reduce((sum, word) => sum + word.max, 0);
  const surplus = words[most];
  if (surplus !== undefined) throw new OutboxError("usage", `surplus argument ${quote(surplus)}`, `see outbox ${command.name} --help`);
  let at = 0;
  for (const word of command.words) {
    if (words.length < at + word.min)
      throw new OutboxError("usage", `${command.name} needs ${word.name}`, `see outbox ${command.name} --help`);
    const value = words[at];
    if (word.choices !== undefined && value !== undefined && !word.choices.includes(value)) {
      const meant = nearest(value, word.choices);
      throw new OutboxError(
        "usage",
        `unknown ${word.name} ${quote(value)}`,
        meant === null ? `one of ${word.choices.join(", ")}` : `did you mean ${meant}?`,
      );
    }
    at += Math.min(word.max, words.length - at);
  }
}

/** What is handed on is marked by `--`, so that none of its flags is ever taken for one of ours. */
function checkRest(rest: readonly string[] | null, command: CommandSpec, name: string): void {
  const help = `see outbox ${command.name} --help`;
  if (rest === null) throw new OutboxError("usage", `${command.name} needs -- before ${name}`, `write outbox ${command.usage}`);
  if ((rest[0] ?? "") === "") throw new OutboxError("usage", `${command.name} needs ${name} after --`, help);
}

function checkExclusions(given: ReadonlyMap<string, unknown>, excludes: readonly (readonly string[])[]): void {
  for (const group of excludes) {
    const [first, second] = group.filter((flag) => given.has(flag));
    if (first !== undefined && second !== undefined)
      throw new OutboxError("usage", `--${first} and --${second} exclude each other`, "give one of them");
  }
}

/** `--version` stands alone, so that it never hides a command that was meant to run. */
function alone(argv: readonly string[], at: number): Parsed {
  const surplus = argv[at + 1];
  if (surplus !== undefined)
    throw new OutboxError("usage", `surplus argument ${quote(surplus)} after --version`, "write outbox --version alone");
  return { what: "version" };
}

function quote(word: string): string {
  return `"${word}"`;
}

class GivenArgs implements Args {
  readonly words: readonly string[];
  readonly rest: readonly string[];
  readonly #flags: Readonly<Record<string, FlagSpec>>;
  readonly #given: ReadonlyMap<string, readonly string[]>;
  constructor(
    words: readonly string[],
    rest: readonly string[],
    flags: Readonly<Record<string, FlagSpec>>,
    given: ReadonlyMap<string, readonly string[]>,
  ) {
    this.words = words;
    this.rest = rest;
    this.#flags = flags;
    this.#given = given;
  }
  text(flag: string): string | undefined {
    return this.#values(flag, "string")?.[0];
  }
  list(flag: string): readonly string[] {
    return this.#values(flag, "list") ?? [];
  }
  on(flag: string): boolean {
    return this.#values(flag, "boolean") !== undefined;
  }
  #values(flag: string, kind: FlagSpec["kind"]): readonly string[] | undefined {
    invariant(Object.hasOwn(this.#flags, flag) && this.#flags[flag]?.kind === kind, `--${flag} is not a ${kind} flag of this command`);
    return this.#given.get(flag);
  }
}
