/** The envelope handed to the transport: ADR-0059 D1, written once at enqueue and byte-identical on every attempt. */

import type { CheckedRequest } from "./request.ts";
import { bytesOf } from "./text.ts";

/** Existing consumers deserialise by this name. */
const LION_CLASS = "lionagi.session.signal.DispatchSignal";

export interface EnvelopeParts {
  readonly signalId: string;
  /** Epoch seconds, already rounded to milliseconds: column and envelope agree. */
  readonly createdAt: number;
  readonly emitterRole: string | null;
  readonly dispatchId: string;
  readonly kind: string;
  readonly deliverTo: string;
  readonly ackToken: string | null;
  /** The text of a JSON object, checked; spliced in as it is. */
  readonly body: string;
}

/** Builds the envelope. `body` is its last member, so that `hasBody` can compare it without parsing. */
export function envelope(parts: EnvelopeParts): string {
  const head = JSON.stringify({
    id: parts.signalId,
    created_at: parts.createdAt,
    metadata: { lion_class: LION_CLASS },
    data: null,
    emitter_role: parts.emitterRole,
    schema_version: 1,
    dispatch_id: parts.dispatchId,
    kind: parts.kind,
    deliver_to: parts.deliverTo,
    attempt: 0, // the live number is in the command's environment (ADR-0059 D1)
    ack_token: parts.ackToken,
  });
  return `${head.slice(0, -1)},"body":${parts.body}}`;
}

/** How long the envelope of a request will be, in bytes: ids and tokens have a fixed length, and so has a time to the millisecond. */
export function envelopeBytes(request: CheckedRequest): number {
  const hex = "0".repeat(32);
  const sample = envelope({
    signalId: `${hex}----`,
    createdAt: 1_767_225_600.123,
    emitterRole: request.emitter_role,
    dispatchId: hex,
    kind: request.kind,
    deliverTo: request.deliver_to,
    ackToken: request.ack_required ? hex : null,
    body: request.body,
  });
  return bytesOf(sample);
}

/**
 * Whether this envelope carries exactly this body text. Both are balanced JSON and `body` comes last, so the comparison
 * of the end is exact: inside a nested object more brackets would follow, inside a string the quotes would be escaped.
 */
export function hasBody(payload: string, body: string): boolean {
  return payload.endsWith(`"body":${body}}`);
}
