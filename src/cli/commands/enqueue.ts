/** `outbox enqueue`: one message, or a batch, committed before its id is printed. */
import { OutboxError } from "../../core/errors.ts";
import { handIn, handInNew, quickSettings } from "../handin.ts";
import type { Io } from "../io.ts";
import type { Args } from "../parse.ts";
import { requestsOf } from "../request.ts";

export async function run(args: Args, io: Io): Promise<number> {
  const onDuplicate = args.text("on-duplicate") ?? "keep";
  if (onDuplicate !== "keep" && onDuplicate !== "fail")
    throw new OutboxError("usage", `--on-duplicate "${onDuplicate}" is unknown`, "write keep or fail");
  const loaded = await quickSettings(args, io);
  const asked = await requestsOf(args, io, loaded.settings);
  const fails = onDuplicate === "fail";
  if (!args.on("now")) return fails ? handInNew(args, io, loaded.settings, asked) : handIn(args, io, loaded.settings, asked.requests);
  const { enqueueNow } = await import("../inline.ts");
  return enqueueNow(args, io, loaded, asked.requests, fails);
}
