/** `outbox migrate`: brings a database to this schema; with `--install` adds the tables to a program's own. */
import { bringUp, installInto } from "../../store/prepare.ts";
import { SCHEMA_VERSION } from "../../store/version.ts";
import { OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { escapeControls, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { carefulSettings, databaseOf, existing } from "../place.ts";

export async function run(args: Args, io: Io): Promise<number> {
  const { settings } = await carefulSettings(args, io);
  const database = databaseOf(args, io, settings);
  const terms = existing(database, io);
  if (args.on("install")) await installInto(terms);
  else await bringUp(terms);
  io.out(
    args.on("json")
      ? jsonLine({ path: database.path, schema: SCHEMA_VERSION })
      : `${escapeControls(database.path)} has schema ${SCHEMA_VERSION}\n`,
  );
  return OK;
}
