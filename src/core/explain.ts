/** What happens to a dispatch next, and why, in a few words. Pure: the row and the time say it. */
import type { Dispatch } from "./dispatch.ts";
import { shortDuration } from "./duration.ts";
import { firstLine } from "./first_line.ts";
import { shortReason } from "./lifecycle.ts";

export type Explainable = Pick<
  Dispatch,
  "status" | "attempt" | "max_attempts" | "next_attempt_at" | "ack_required" | "expires_at" | "reason_code" | "last_error"
>;

/** What keeps a row from being claimed, apart from its own time. Null: it is not in the way. */
export interface Situation {
  /** `seq` of the earlier row of its ordering key that is under way. */
  readonly waits_for: number | null;
  /** The hold that stops it. */
  readonly held_by: number | null;
  /** End of the cooldown of its destination's circuit, epoch seconds. Once it is past, one row at a time may try. */
  readonly open_until: number | null;
}

/** Nothing is in its way. */
export const FREE: Situation = { waits_for: null, held_by: null, open_until: null };

/**
 * The next move and its cause. Terminal rows say how they ended.
 * @param now epoch seconds
 * @example nextMove(row, now) === "again in 40s: exit 1"
 */
export function nextMove(row: Explainable, now: number, situation: Situation = FREE): string {
  switch (row.status) {
    case "pending":
      return pending(row, now, situation);
    case "delivering":
      return row.next_attempt_at > now
        ? `running; lease ends in ${until(row.next_attempt_at, now)}`
        : `its runner vanished; ${afterItsRunner(row, now, situation)}`;
    case "delivered":
      return "the command took it";
    case "acked":
      return "acknowledged";
    case "dead_letter":
      return because(shortReason(row.reason_code), row);
    case "expired":
      return shortReason(row.reason_code) === "cancelled" ? "cancelled" : because("expired", row);
    default:
      return row.status satisfies never;
  }
}

function pending(row: Explainable, now: number, situation: Situation): string {
  if (row.expires_at !== null && row.expires_at <= now) return "expires at the next tick";
  // A pending row is never due later than it expires; due exactly then, it expires instead of being sent.
  if (row.expires_at !== null && row.next_attempt_at >= row.expires_at) return because(`expires in ${until(row.expires_at, now)}`, row);
  // What ends needs no permission; everything else does.
  const block = row.attempt < row.max_attempts ? blocked(row, now, situation) : null;
  if (block !== null) return block;
  const late = now - row.next_attempt_at;
  const when = late >= 0 ? "now" : `in ${until(row.next_attempt_at, now)}`;
  const reason = shortReason(row.reason_code);
  const isUsedUp = row.attempt >= row.max_attempts;
  if (isUsedUp) return reason === "transport_ok" ? `dead letter ${when} unless acknowledged` : `dead letter ${when}: all attempts are used`;
  const isFirst = reason === "enqueued" || reason === "operator_retry";
  // One that has been due for long waits for a runner rather than for the next tick.
  const send = late >= 1 ? `due for ${shortDuration(late * 1_000)}` : `${isFirst ? "due" : "again"} ${when}`;
  if (reason === "transport_ok") return `${send} unless acknowledged`;
  return isFirst ? send : because(send, row);
}

function afterItsRunner(row: Explainable, now: number, situation: Situation): string {
  if (row.attempt >= row.max_attempts) return "dead letter at the next tick";
  return blocked(row, now, situation) ?? "again at the next tick";
}

function blocked(row: Explainable, now: number, { waits_for, held_by, open_until }: Situation): string | null {
  if (held_by !== null) return "held";
  if (waits_for !== null) return `waits for ${waits_for} of its key`;
  // A circuit matters to what would be due before it lets something through again.
  if (open_until === null || open_until <= Math.max(now, row.next_attempt_at)) return null;
  return because(`circuit open for ${until(open_until, now)}`, row);
}

function because(what: string, row: Explainable): string {
  return row.last_error === null ? what : `${what}: ${firstLine(row.last_error)}`;
}

function until(epochS: number, now: number): string {
  return shortDuration((epochS - now) * 1_000);
}
