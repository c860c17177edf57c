/** `outbox config check|show|path|schema`: whether the settings are right, what holds, and where it comes from. */
import { OutboxError } from "../../core/errors.ts";
import { advice } from "../../settings/advice.ts";
import { type Explained, loadSettings } from "../../settings/complain.ts";
import { describe, type Holding, type Instead } from "../../settings/describe.ts";
import { openSource, userFile } from "../../settings/locate.ts";
import { SettingsError } from "../../settings/problem.ts";
import schema from "../../settings/schema.json";
import { exitCode, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { escapeControls, jsonLine, table } from "../output.ts";
import type { Args } from "../parse.ts";
import { choiceOf, databaseOf, namedDatabase } from "../place.ts";

/** What `config` can be asked. */
export type Question = "check" | "show" | "path" | "schema";

export function run(args: Args, io: Io): Promise<number> {
  const question = args.words[0] as Question;
  switch (question) {
    case "check":
      return Promise.resolve(check(args, io));
    case "show":
      return Promise.resolve(show(args, io));
    case "path":
      return Promise.resolve(path(args, io));
    case "schema":
      io.out(`${JSON.stringify(schema, null, 2)}\n`);
      return Promise.resolve(OK);
    default:
      return question satisfies never;
  }
}

function check(args: Args, io: Io): number {
  let explained: Explained;
  try {
    explained = loadSettings(choiceOf(args, io));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    if (args.on("json")) io.out(jsonLine({ file: openSource(choiceOf(args, io)).file, ok: false, problems: error.problems, warnings: [] }));
    else for (const problem of error.problems) io.err(`outbox: ${escapeControls(problem)}`);
    return exitCode("settings");
  }
  const name = explained.file ?? "built-in settings";
  const warnings = advice(explained, explained.lineOf).map(({ line, message }) => `${name}${line === null ? "" : `:${line}`}: ${message}`);
  if (args.on("json")) io.out(jsonLine({ file: explained.file, ok: true, problems: [], warnings }));
  else {
    io.out(`${escapeControls(name)}: ok\n`);
    for (const warning of warnings) io.err(`outbox: ${escapeControls(warning)}`);
  }
  return OK;
}

function show(args: Args, io: Io): number {
  const explained = loadSettings(choiceOf(args, io));
  const holding = describe(explained, insteadOf(args, io, explained));
  if (args.on("json")) {
    io.out(holding.map((one) => jsonLine(one)).join(""));
    return OK;
  }
  const { columns, color } = io.terminal();
  const rows = holding.map(({ name, value, from }) => [name, shown(value), from]);
  io.out(table([{ title: "SETTING" }, { title: "VALUE", elastic: true }, { title: "FROM", elastic: true }], rows, { columns, color }));
  return OK;
}

/** What a flag or variable put in the place of `database`. */
function insteadOf(args: Args, io: Io, explained: Explained): Instead | null {
  const source = args.text("source");
  if (source === undefined && namedDatabase(args, io) === null) return null;
  const from = source !== undefined ? "--source" : args.text("db") !== undefined ? "--db" : "OUTBOX_DB";
  return { database: databaseOf(args, io, explained.settings).path, from };
}

function path(args: Args, io: Io): number {
  const { file, origin } = openSource(choiceOf(args, io));
  if (file === null)
    throw new OutboxError("no", "there is no settings file, so the built-in settings hold", `outbox init writes ${userFile(io.env)}`);
  io.out(args.on("json") ? jsonLine({ file, origin }) : `${escapeControls(file)}\n`);
  return OK;
}

function shown(value: Holding["value"]): string {
  if (value === null) return "-";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
