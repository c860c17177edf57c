import { describe, expect, test } from "bun:test";
import { COMMANDS } from "../../../src/cli/command.ts";
import { COMMON } from "../../../src/cli/flags.ts";
import { parse } from "../../../src/cli/parse.ts";
import { OutboxError } from "../../../src/core/errors.ts";

const read = (...argv: string[]) => parse(argv, { commands: COMMANDS, common: COMMON });

function refusal(...argv: string[]): string {
  try {
    return `accepted: ${read(...argv).what}`;
  } catch (error) {
    if (error instanceof OutboxError && error.kind === "usage") return `${error.message}; ${error.hint}`;
    throw error;
  }
}

function args(...argv: string[]) {
  const parsed = read(...argv);
  if (parsed.what !== "run") throw new Error(`"${argv.join(" ")}" asks for ${parsed.what}`);
  return parsed.args;
}

describe("parse() accepts", () => {
  test("a value as the next word or after an equals sign", () => {
    expect(args("enqueue", "--kind", "a", "--to=b=c").text("kind")).toBe("a");
    expect(args("enqueue", "--kind", "a", "--to=b=c").text("to")).toBe("b=c");
  });

  test("the common flags before and after the command", () => {
    expect(args("--db", "x", "ls").text("db")).toBe("x");
    expect(args("ls", "--db=x").text("db")).toBe("x");
    expect(args("--config=c", "ls", "--source", "shop").text("config")).toBe("c");
  });

  test("a repeated list flag, in the order given", () => {
    expect(args("ls", "--kind", "b", "--kind=a").list("kind")).toEqual(["b", "a"]);
    expect(args("ls").list("kind")).toEqual([]);
  });

  test("a lone dash and an empty text as values", () => {
    expect(args("enqueue", "--body-file", "-").text("body-file")).toBe("-");
    expect(args("enqueue", "--text", "").text("text")).toBe("");
    expect(args("enqueue", "--text=").text("text")).toBe("");
  });

  test("a value that looks like a flag after an equals sign", () => {
    expect(args("enqueue", "--text=-h").text("text")).toBe("-h");
    expect(args("enqueue", "--text=--help").text("text")).toBe("--help");
  });

  test("everything after -- as words", () => {
    expect(args("show", "--json", "--", "--help", "-h", "--").words).toEqual(["--help", "-h", "--"]);
  });

  test("a name of two words, with its flags before and after it", () => {
    const given = args("--db", "x", "inbox", "run", "417", "--consumer", "audit", "--", "true");
    expect([given.text("db"), given.text("consumer"), given.words, given.rest]).toEqual(["x", "audit", ["417"], ["true"]]);
  });

  test("everything after -- as somebody else's command, to the letter", () => {
    const odd = ["--help", "--", "-h", "", "--consumer", "--db=x", "inbox"];
    expect(args("inbox", "run", "--", ...odd)).toMatchObject({ words: [], rest: odd });
    expect(args("inbox", "run", "--", "cmd", ...odd)).toMatchObject({ words: [], rest: ["cmd", ...odd] });
    expect(args("inbox", "run", "--", "cmd").text("consumer")).toBeUndefined();
    expect(args("ls").rest).toEqual([]);
  });

  test("a boolean flag without a value", () => {
    expect(args("ls", "--json").on("json")).toBeTrue();
    expect(args("ls").on("json")).toBeFalse();
  });
});

describe("parse() finds help and version", () => {
  test.each([
    [["--help"], null],
    [["-h"], null],
    [["--db", "x", "--help", "nonsense"], null],
    [["enqueue", "--help"], "enqueue"],
    [["enqueue", "--kind", "k", "-h", "--nonsense"], "enqueue"],
    [["inbox", "--help"], "inbox run"],
    [["inbox", "run", "-h", "--", "x"], "inbox run"],
  ])("%p asks for help", (argv, name) => {
    const parsed = read(...argv);
    expect(parsed.what === "help" && (parsed.command?.name ?? null)).toBe(name);
  });

  test("--version stands alone", () => {
    expect(read("--version").what).toBe("version");
    expect(refusal("--version", "enqueue")).toStartWith('surplus argument "enqueue"');
  });

  test("no command is nothing, also with common flags", () => {
    expect(read().what).toBe("nothing");
    expect(read("--db", "x").what).toBe("nothing");
  });
});

describe("parse() refuses", () => {
  test.each([
    [["enqueue", "--text", "-h"], '--text needs a value, and "-h" looks like a flag; if it is the value, write --text=-h'],
    [["enqueue", "--text", "--help"], '--text needs a value, and "--help" looks like a flag; if it is the value, write --text=--help'],
    [["enqueue", "--text", "--"], '--text needs a value, and "--" looks like a flag; if it is the value, write --text=--'],
    [["enqueue", "--kind"], "--kind needs a value; write --kind KIND"],
    [["enqueue", "--kind="], "--kind is empty; write --kind KIND, or leave it out"],
    [["--db", "", "ls"], "--db is empty; write --db PATH, or leave it out"],
    [["ls", "--source="], "--source is empty; write --source NAME, or leave it out"],
    [["enqueue", "--kind", "a", "--kind", "a"], "--kind is given twice; give it once"],
    [["--db", "a", "ls", "--db", "a"], "--db is given twice; give it once"],
    [["ls", "--json", "--json"], "--json is given twice; give it once"],
    [["ls", "--json=true"], "--json takes no value; write --json alone"],
    [["ls", "--no-json"], "unknown flag --no-json of ls; see outbox ls --help"],
    [["enqueue", "--tetx", "a"], "unknown flag --tetx of enqueue; did you mean --text?"],
    [["enqueue", "--max_attempts=3"], "unknown flag --max_attempts of enqueue; did you mean --max-attempts?"],
    [["enqueue", "-kind", "a"], 'unknown flag "-kind" of enqueue; did you mean --kind?'],
    [["show", "-5"], 'unknown flag "-5" of show; a word that begins with - goes after --; see outbox show --help'],
    [["--constructor", "ls"], "unknown flag --constructor; see outbox --help"],
    [["ls", "--__proto__=x"], "unknown flag --__proto__ of ls; see outbox ls --help"],
    [["ls", "--=x"], "unknown flag -- of ls; see outbox ls --help"],
    [["--json", "ls"], "--json stands before the command; write it after the command's name"],
    [["--nonsense", "ls"], "unknown flag --nonsense; see outbox --help"],
    [["enqeue"], 'unknown command "enqeue"; did you mean enqueue?'],
    [[""], 'unknown command ""; see outbox --help'],
    [["-"], 'unknown command "-"; see outbox --help'],
    [["constructor"], 'unknown command "constructor"; see outbox --help'],
    [["toString"], 'unknown command "toString"; see outbox --help'],
    [["__proto__"], 'unknown command "__proto__"; see outbox --help'],
    [["inbox"], "inbox is half of a command; write inbox run; see outbox inbox run --help"],
    [["inbox", "--db", "x"], "inbox is half of a command; write inbox run; see outbox inbox run --help"],
    [["inbox", "rum", "--", "true"], 'unknown command "inbox rum"; did you mean inbox run?'],
    [["inbx", "run"], 'unknown command "inbx"; did you mean inbox run?'],
    [["inb", "run"], 'unknown command "inb"; did you mean inbox run?'],
    [["inbox", "run", "417", "true"], "inbox run needs -- before CMD; write outbox inbox run [ID] [--consumer NAME] -- CMD..."],
    [["inbox", "run", "--"], "inbox run needs CMD after --; see outbox inbox run --help"],
    [["inbox", "run", "--", ""], "inbox run needs CMD after --; see outbox inbox run --help"],
    [["inbox", "run", "1", "2", "--", "true"], 'surplus argument "2"; see outbox inbox run --help'],
    [["inbox", "run", "--json", "--", "true"], "unknown flag --json of inbox run; see outbox inbox run --help"],
    [["show"], "show needs ID; see outbox show --help"],
    [["enqueue", "extra"], 'surplus argument "extra"; see outbox enqueue --help'],
    [["ack", "a", "b", "c"], 'surplus argument "c"; see outbox ack --help'],
    [["--db", "a", "ls", "--source", "b"], "--db and --source exclude each other; give one of them"],
    [["enqueue", "--text", "a", "--body", "{}"], "--body and --text exclude each other; give one of them"],
    [["enqueue", "--retry-for=1d", "--max-attempts=3"], "--max-attempts and --retry-for exclude each other; give one of them"],
  ])("%p", (argv, line) => {
    expect(refusal(...argv)).toBe(line);
  });

  test("to look up a flag that the command does not have", () => {
    expect(() => args("ls").text("limits")).toThrow("this should not happen");
    expect(() => args("ls").on("limit")).toThrow("this should not happen");
  });
});

describe("the table of commands", () => {
  test.each(COMMANDS.map((command) => [command.name, command] as const))("%s is coherent", (_, command) => {
    for (const group of command.excludes ?? []) for (const flag of group) expect(Object.hasOwn(command.flags, flag)).toBeTrue();
    for (const flag of Object.keys(command.flags)) expect(Object.hasOwn(COMMON, flag)).toBeFalse();
    expect(`${command.usage} `).toStartWith(`${command.name} `);
    for (const { line } of command.examples) expect(line).toMatch(new RegExp(`^outbox (help )?${command.name}\\b|^outbox help`));
    expect(command.summary).not.toEndWith(".");
    // Whoever opens files refuses a path that lost bytes, from --db and --config on.
    if (command.exits.length > 0) expect(command.exits).toContain(65);
  });

  test.each(COMMANDS.flatMap((command) => command.examples.map(({ line }) => [line] as const)))("the example %p is understood", (line) => {
    const words = [...line.replace(/ \| .*/, "").matchAll(/'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? "");
    expect(refusal(...words.slice(1))).toBe("accepted: run");
  });
});
