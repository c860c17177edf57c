/** Commands that set things up and explain. Only data. */
import { JSON_FLAG } from "../flags.ts";
import type { CommandSpec } from "../spec.ts";

const GROUP = "Set up";

const init: CommandSpec = {
  name: "init",
  group: GROUP,
  summary: "Write a settings file to start from",
  usage: "init [FILE]",
  about: ["Every setting with its default, commented out. Never writes over a file. Without FILE, where settings are looked for."],
  words: [{ name: "FILE", about: "The file to write", min: 0, max: 1 }],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox init", about: "In ~/.config/outbox/settings.yaml" }],
  exits: [1, 65, 74, 77],
  load: () => import("../commands/init.ts"),
};

const config: CommandSpec = {
  name: "config",
  group: GROUP,
  summary: "Check the settings, or show them",
  usage: "config check|show|path|schema",
  about: [
    "check tells every mistake with its line, and warns of what is allowed and yet unwise. show prints each setting with where it comes from, path the file in use, schema the JSON Schema for an editor.",
  ],
  words: [{ name: "WHAT", about: "check, show, path or schema", min: 1, max: 1, choices: ["check", "show", "path", "schema"] }],
  flags: { ...JSON_FLAG },
  examples: [
    { line: "outbox config check", about: "Before the next run meets it" },
    { line: "outbox config show --json", about: "One setting a line" },
  ],
  exits: [1, 65, 77, 78],
  load: () => import("../commands/config.ts"),
};

const migrate: CommandSpec = {
  name: "migrate",
  group: GROUP,
  summary: "Bring a database to the schema of this outbox",
  usage: "migrate [--install]",
  words: [],
  flags: { install: { kind: "boolean", about: "Add the tables to a database of your own program" }, ...JSON_FLAG },
  examples: [{ line: "outbox migrate --install --db ./state.db", about: "Keep the outbox in your program's database" }],
  exits: [1, 65, 74, 75, 77, 78],
  load: () => import("../commands/migrate.ts"),
};

const version: CommandSpec = {
  name: "version",
  group: GROUP,
  summary: "Print the version",
  usage: "version [--json]",
  words: [],
  flags: { ...JSON_FLAG },
  examples: [{ line: "outbox version --json", about: "With the schema number and the platform" }],
  exits: [],
  load: () => import("../commands/version.ts"),
};

const help: CommandSpec = {
  name: "help",
  group: GROUP,
  summary: "Explain a command",
  usage: "help [COMMAND]",
  words: [{ name: "COMMAND", about: "Name of a command", min: 0, max: 2 }],
  flags: {},
  examples: [{ line: "outbox help enqueue", about: "The same as outbox enqueue --help" }],
  exits: [],
  load: () => import("../commands/help.ts"),
};

export const SET_UP: readonly CommandSpec[] = [init, config, migrate, version, help];
