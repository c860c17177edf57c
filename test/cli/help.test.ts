/** Help, as people see it. `UPDATE_GOLDEN=1 bun test test/cli/help.test.ts` writes the golden files anew. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { COMMANDS } from "../../src/cli/command.ts";
import { commandHelp, overview } from "../../src/cli/help.ts";
import { Place } from "./outbox.ts";

const golden = async (name: string, text: string): Promise<void> => {
  const file = join(import.meta.dir, "golden", `${name}.txt`);
  if (process.env["UPDATE_GOLDEN"] === "1") await Bun.write(file, text);
  expect(text).toBe(await Bun.file(file).text());
};

test("--help, -h and help print the overview", async () => {
  using place = new Place();
  const { stdout } = await place.start(["--help"]);
  await golden("outbox", stdout);
  await place.run(["-h"], { stdout });
  await place.run(["help"], { stdout });
});

test.each(COMMANDS.map((command) => command.name))("%s --help is as written down", async (name) => {
  using place = new Place();
  const words = name.split(" ");
  const { stdout } = await place.start([...words, "--help"]);
  await golden(words.join("-"), stdout);
  await place.run(["help", ...words], { stdout });
  for (const line of stdout.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
});

test("help is without colour off a terminal", async () => {
  using place = new Place();
  const { stdout } = await place.start(["--help"], { env: { FORCE_COLOR: "1", TERM: "xterm-256color" } });
  expect(stdout).not.toContain("\u001b");
});

test("the program alone prints help on stderr and exits 2", async () => {
  using place = new Place();
  await place.run([], { code: 2, stderr: /^outbox hands a message/ });
  await place.run(["--db", "x"], { code: 2, stderr: /^outbox hands a message/ });
});

test("version is printed alone", async () => {
  using place = new Place();
  await place.run(["--version"], { stdout: /^outbox \d+\.\d+\.\d+\n$/ });
  await place.run(["version"], { stdout: /^outbox \d+\.\d+\.\d+\n$/ });
  expect(Object.keys((await place.json(["version"]))[0] ?? {})).toEqual(["version", "schema", "bun", "platform", "arch"]);
});

test.each([
  ["enqeue", 'outbox: unknown command "enqeue"; did you mean enqueue?\n'],
  ["constructor", 'outbox: unknown command "constructor"; see outbox --help\n'],
  ["__proto__", 'outbox: unknown command "__proto__"; see outbox --help\n'],
  ["\u001b[2J", 'outbox: unknown command "\\x1b[2J"; see outbox --help\n'],
])("%j is no command", async (word, stderr) => {
  using place = new Place();
  await place.run([word], { code: 2, stderr });
  await place.run(["help", word], { code: 2, stderr });
});

test.each([40, 60, 79])("help fits a terminal of %d columns, but for the commands of its examples", (columns) => {
  const terminal = { columns, color: false };
  const texts = [overview(terminal), ...COMMANDS.map((command) => commandHelp(command, terminal))];
  const examples = new Set(COMMANDS.flatMap((command) => command.examples.map(({ line }) => `  ${line}`)));
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => !examples.has(line));
  expect(lines.filter((line) => Bun.stringWidth(line) > columns)).toEqual([]);
});
