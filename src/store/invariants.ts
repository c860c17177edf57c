/** What must hold of the claim's caches (migration 0002). A row told here is delayed by a wrong cache, never sent against a guard. */
import { type Handle, statement } from "./statement.ts";

export interface Breach {
  readonly what: "ready is not the turn" | "due_at is not the first due time" | "the destination is missing" | "flight is not between";
  readonly deliver_to: string;
  /** The row, where it is about one. */
  readonly seq: number | null;
}

/**
 * Every breach; empty when all is well. Reads all rows that have not come to their end.
 *
 * `ready` is what the view `dispatch_turn` says. `due_at` is the least due time of a destination's ready rows. Each of these rows
 * has its destination. `flight` lies between the live claims and all that are delivering.
 * @param now epoch seconds
 */
export function breaches(db: Handle, now: number): Breach[] {
  return statement<Breach>(
    db,
    `WITH live AS MATERIALIZED (
       SELECT deliver_to, min(next_attempt_at) FILTER (WHERE ready = 1) AS due_at, count(*) FILTER (WHERE status = 'delivering') AS delivering,
         count(*) FILTER (WHERE status = 'delivering' AND next_attempt_at > $now) AS flying
       FROM main.dispatch_outbox WHERE status IN ('pending', 'delivering') GROUP BY deliver_to)
     SELECT 'ready is not the turn' AS what, o.deliver_to, o.seq FROM main.dispatch_outbox o
       WHERE o.status IN ('pending', 'delivering') AND o.ready <> (SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)
     UNION ALL
     SELECT 'due_at is not the first due time', d.deliver_to, NULL FROM main.dispatch_destinations d LEFT JOIN live l ON l.deliver_to = d.deliver_to
       WHERE d.due_at IS NOT l.due_at
     UNION ALL
     SELECT 'the destination is missing', l.deliver_to, NULL FROM live l
       WHERE (l.due_at IS NOT NULL OR l.flying > 0) AND NOT EXISTS (SELECT 1 FROM main.dispatch_destinations d WHERE d.deliver_to = l.deliver_to)
     UNION ALL
     SELECT 'flight is not between', d.deliver_to, NULL FROM main.dispatch_destinations d LEFT JOIN live l ON l.deliver_to = d.deliver_to
       WHERE d.flight NOT BETWEEN coalesce(l.flying, 0) AND coalesce(l.delivering, 0)`,
  ).all({ now });
}
