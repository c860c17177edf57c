/** How much one element of a command's argv may hold, and which message is too long for it. */
import { textOf } from "./body.ts";
import { envelopeBytes } from "./envelope.ts";
import type { CheckedRequest } from "./request.ts";
import { placeholderOf } from "./template.ts";
import { bytesOf } from "./text.ts";

/** Longest argv element or `NAME=value`, in bytes: Linux takes 128 KiB with the NUL that ends it. Elsewhere it may be more; one limit is easier to explain. */
export const ELEMENT_LIMIT = 131_071;

/** The placeholder of the template that this message is too long for, or null. */
export function overlongElement(template: readonly string[], request: CheckedRequest): "payload" | "body" | "text" | null {
  // Every other part of an envelope is far shorter; most messages are done here.
  if (request.body.length < ELEMENT_LIMIT / 16) return null;
  const names = template.slice(1).map(placeholderOf);
  const sizes = {
    payload: () => envelopeBytes(request),
    body: () => bytesOf(request.body),
    text: () => bytesOf(textOf(request.body)),
  } as const;
  for (const name of ["payload", "body", "text"] as const) if (names.includes(name) && sizes[name]() > ELEMENT_LIMIT) return name;
  return null;
}
