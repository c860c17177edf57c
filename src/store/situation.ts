/** What keeps rows that have not come to their end from being claimed, apart from their time: for lists and for one that is shown. */
import type { Dispatch } from "../core/dispatch.ts";
import { FREE, type Situation } from "../core/explain.ts";
import { type Handle, statement } from "./statement.ts";

type Placed = Pick<Dispatch, "seq" | "status">;

/**
 * The rows with what is in their way. Costs some look-ups in indexes for each row that waits, nothing for the others.
 * @param now epoch seconds; a hold whose time is over is in nobody's way
 */
export function situated<Row extends Placed>(db: Handle, rows: readonly Row[], now: number): (Row & Situation)[] {
  const waiting = rows.filter(({ status }) => status === "pending" || status === "delivering").map(({ seq }) => seq);
  if (waiting.length === 0) return rows.map((row) => ({ ...row, ...FREE }));
  const found = statement<Situation & { seq: number }>(
    db,
    `SELECT t.seq, t.waits_for, h.id AS held_by, d.open_until
     FROM json_each($seqs) s CROSS JOIN main.dispatch_turn t ON t.seq = s.value
       CROSS JOIN main.dispatch_outbox o ON o.seq = t.seq
       LEFT JOIN main.dispatch_holds h ON h.id = t.held_by AND (h.ends_at IS NULL OR h.ends_at > $now)
       LEFT JOIN main.dispatch_destinations d ON d.deliver_to = o.deliver_to`,
  ).all({ seqs: JSON.stringify(waiting), now });
  const bySeq = new Map(found.map(({ seq, ...situation }) => [seq, situation]));
  return rows.map((row) => ({ ...row, ...(bySeq.get(row.seq) ?? FREE) }));
}
