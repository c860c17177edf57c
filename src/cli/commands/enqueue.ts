/** `outbox enqueue`: one message, or a batch, committed before its id is printed. */
import { OutboxError } from "../../core/errors.ts";
import { handIn, quickSettings } from "../handin.ts";
import type { Io } from "../io.ts";
import type { Args } from "../parse.ts";
import { requestsOf } from "../request.ts";

export async function run(args: Args, io: Io): Promise<number> {
  const onDuplicate = args.text("on-duplicate") ?? "keep";
  if (onDuplicate !== "keep" && onDuplicate !== "fail")
    throw new OutboxError("usage", `--on-duplicate "${onDuplicate}" is unknown`, "write keep or fail");
  // A batch stores all or nothing, and what it would leave out for one known key is not to be guessed.
  if (onDuplicate === "fail" && args.text("batch") !== undefined)
    throw new OutboxError("usage", "--on-duplicate fail and --batch exclude each other", "--json says of each line whether it was known");
  const loaded = await quickSettings(args, io);
  const requests = await requestsOf(args, io, loaded.settings);
  if (!args.on("now")) return handIn(args, io, loaded.settings, requests, onDuplicate === "fail");
  const { enqueueNow } = await import("../inline.ts");
  return enqueueNow(args, io, loaded, requests, onDuplicate === "fail");
}
