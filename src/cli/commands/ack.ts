/** `outbox ack`: the consumer says that it has the message (ADR-0059 D5). */
import { parseRef } from "../../core/dispatch.ts";
import { OutboxError } from "../../core/errors.ts";
import type { AckOutcome } from "../../store/store.ts";
import { exitCode, OK } from "../exit.ts";
import { quickSettings } from "../handin.ts";
import type { Io } from "../io.ts";
import { escapeControls, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { databaseOf, existing, withStore } from "../place.ts";

const REFUSALS: Readonly<Record<Exclude<AckOutcome, "acked" | "already_acked">, string>> = {
  not_found: "there is no such message",
  not_requested: "it did not ask for an acknowledgement",
  mismatch: "the token is not its token",
  wrong_status: "it has come to its end without an acknowledgement",
  lost_race: "it moved at the same moment; ask again",
};

export async function run(args: Args, io: Io): Promise<number> {
  const { id, token } = wanted(args, io);
  const ref = parseRef(id);
  const { settings } = await quickSettings(args, io);
  const terms = existing(databaseOf(args, io, settings), io);
  const outcome = await withStore<AckOutcome>(terms, io, async (store) => (ref === null ? "not_found" : store.ack(ref, token)));
  if (args.on("json")) io.out(jsonLine({ outcome }));
  if (outcome === "acked" || outcome === "already_acked") return OK;
  io.err(escapeControls(`outbox: cannot acknowledge ${id}: ${REFUSALS[outcome]}`));
  return exitCode("no");
}

/** @throws OutboxError `usage` */
function wanted(args: Args, io: Io): { readonly id: string; readonly token: string } {
  const [id, token] = args.words;
  if (id !== undefined && token !== undefined) return { id, token };
  if (id !== undefined) throw new OutboxError("usage", "ack needs TOKEN besides ID", "give both, or none within a delivered command");
  const fromEnv = { id: io.env["OUTBOX_ID"] ?? "", token: io.env["OUTBOX_ACK_TOKEN"] ?? "" };
  if (fromEnv.id === "")
    throw new OutboxError(
      "usage",
      "ack needs ID and TOKEN: OUTBOX_ID is not set",
      "give both; only a delivered command has them in its environment",
    );
  if (fromEnv.token === "")
    throw new OutboxError(
      "usage",
      "ack needs ID and TOKEN: OUTBOX_ACK_TOKEN is not set",
      "give both; only a message that asks for an acknowledgement has a token",
    );
  return fromEnv;
}
