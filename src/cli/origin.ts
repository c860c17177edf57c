/** The origin that a process inherits: a command that enqueues hands on the origin of the message that it was started for. */
import { OutboxError } from "../core/errors.ts";
import { type Origin, ORIGIN_FIELDS, originProblem } from "../core/origin.ts";
import type { Io } from "./io.ts";

const VARIABLES: Readonly<Record<keyof Origin, string>> = {
  tenant_id: "OUTBOX_TENANT_ID",
  user_id: "OUTBOX_USER_ID",
  user_roles: "OUTBOX_USER_ROLES",
  correlation_id: "OUTBOX_CORRELATION_ID",
};

/**
 * What the environment says of one field. An empty variable is none.
 * @throws OutboxError `data`, naming the variable
 */
export function inherited(field: keyof Origin, io: Io): string | undefined {
  const name = VARIABLES[field];
  const value = io.env[name];
  if (value === undefined || value === "") return undefined;
  const problem = value.includes("\ufffd")
    ? "holds bytes that are not UTF-8, or U+FFFD, which stands for them"
    : originProblem(field, value);
  if (problem !== null) throw new OutboxError("data", `${name} ${problem}`, "unset it, or give it another value");
  return value;
}

export function inheritedOrigin(io: Io): Partial<Origin> {
  return Object.fromEntries(ORIGIN_FIELDS.map((field) => [field, inherited(field, io)]));
}
