/** `outbox version`. */
import { SCHEMA_VERSION } from "../../store/version.ts";
import type { Io } from "../io.ts";
import { OK } from "../exit.ts";
import { jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { VERSION } from "../version.ts";

export function run(args: Args, io: Io): Promise<number> {
  io.out(
    args.on("json")
      ? jsonLine({ version: VERSION, schema: SCHEMA_VERSION, bun: Bun.version, platform: process.platform, arch: process.arch })
      : `outbox ${VERSION}\n`,
  );
  return Promise.resolve(OK);
}
