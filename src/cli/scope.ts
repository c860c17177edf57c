/** What a hold names, on the command line and in words. */
import { OutboxError } from "../core/errors.ts";
import type { Hold, HoldScope } from "../store/store.ts";
import type { Args } from "./parse.ts";
import { argvText } from "./request.ts";

/** Null: the flags name nothing. @throws OutboxError `data` for text with bytes replaced */
export function scopeOf(args: Args): HoldScope | null {
  const scope: HoldScope = {
    deliverTo: argvText(args, "to", "convert it") ?? null,
    kind: argvText(args, "kind", "convert it") ?? null,
    orderingKey: argvText(args, "ordering-key", "convert it") ?? null,
  };
  return args.on("all") || !isEverything(scope) ? scope : null;
}

/** @throws OutboxError `usage` */
export function nothingNamed(command: string): OutboxError {
  return new OutboxError("usage", `${command} needs --to, --kind, --ordering-key or --all`, `see outbox ${command} --help`);
}

export function isSameScope(hold: Hold, scope: HoldScope): boolean {
  return hold.deliver_to === scope.deliverTo && hold.kind === scope.kind && hold.ordering_key === scope.orderingKey;
}

export function isEverything({ deliverTo, kind, orderingKey }: HoldScope): boolean {
  return deliverTo === null && kind === null && orderingKey === null;
}

/** @example inWords(scope) === "messages of kind build to seat-1" */
export function inWords(scope: HoldScope): string {
  const { deliverTo, kind, orderingKey } = scope;
  if (isEverything(scope)) return "all messages";
  const parts = [
    kind === null ? "" : ` of kind ${kind}`,
    orderingKey === null ? "" : ` of ordering key ${orderingKey}`,
    deliverTo === null ? "" : ` to ${deliverTo}`,
  ];
  return `messages${parts.join("")}`;
}
