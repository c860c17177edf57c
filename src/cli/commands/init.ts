/** `outbox init [FILE]`: a settings file to start from, every setting in it commented out. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { OutboxError } from "../../core/errors.ts";
import { isDenied, refusedCode, refusedWords } from "../../core/refused.ts";
import { loadSettings } from "../../settings/complain.ts";
import { namedFile, userFile } from "../../settings/locate.ts";
import { skeleton } from "../../settings/skeleton.ts";
import { OK } from "../exit.ts";
import { pathFrom } from "../input.ts";
import type { Io } from "../io.ts";
import { complaint, escapeControls, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { choiceOf } from "../place.ts";

export function run(args: Args, io: Io): Promise<number> {
  const [word] = args.words;
  if (word === "-") {
    io.out(skeleton());
    return Promise.resolve(OK);
  }
  if (word === "") throw new OutboxError("usage", "init names no file", "give the path of a settings file, or none for the usual one");
  const named = word === undefined ? (namedFile(choiceOf(args, io))?.path ?? null) : pathFrom(io, word);
  const file = named ?? userFile(io.env);
  // A directory that somebody named and that is not there is a typing error; the usual one may be missing.
  if (named === null) attempt(dirname(file), () => mkdirSync(dirname(file), { recursive: true, mode: 0o700 }));
  attempt(file, () => writeNew(file, skeleton()));
  warnIfRefused(file, io);
  io.out(args.on("json") ? jsonLine({ file }) : `${escapeControls(file)}\n`);
  return Promise.resolve(OK);
}

/** All of it or nothing, and never over what is there: `wx` follows no link and opens no existing file. */
function writeNew(file: string, text: string): void {
  writeFileSync(file, "", { flag: "wx", mode: 0o600 });
  try {
    writeFileSync(file, text, { flush: true });
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** It may lie in a directory that others can write; better said now than by the first command that reads it. */
function warnIfRefused(file: string, io: Io): void {
  try {
    loadSettings({ config: file, env: io.env, uid: io.uid });
  } catch (error) {
    if (!(error instanceof OutboxError)) throw error;
    io.err(complaint(error));
  }
}

function attempt(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    const code = refusedCode(error);
    if (code === "EEXIST") throw new OutboxError("no", `${path} exists already, and is left as it is`, "edit it, or name another file");
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new OutboxError("io", `cannot write ${path}: its directory does not exist`, "make it first");
    const what = `cannot write ${path}: ${refusedWords(error)}`;
    if (isDenied(error)) throw new OutboxError("permission", what, "name a file in a directory of your own", { cause: error });
    throw new OutboxError("io", what, "", { cause: error });
  }
}
