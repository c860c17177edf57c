/**
 * What must hold of everything that triggers keep beside the rows. A row told here by the claim's caches (migration 0002) is delayed,
 * never sent against a guard; a counter told here (migration 0003) makes `stats` say a wrong number, and nothing else.
 */
import { type Miscount, recounted } from "./recount.ts";
import { type Handle, statement } from "./statement.ts";

export interface Breach {
  readonly what:
    | "ready is not the turn"
    | "due_at is not the first due time"
    | "the destination is missing"
    | "flight is not between"
    | Miscount["what"];
  /** The destination, where it is about one. */
  readonly deliver_to: string | null;
  /** The row, where it is about one. */
  readonly seq: number | null;
  /** The counter, where it is about one: its name, and its reason and kind where it has them. */
  readonly counter: string | null;
}

/** Every breach; empty when all is well. Reads all rows and their history. @param now epoch seconds */
export function breaches(db: Handle, now: number): Breach[] {
  return [...cacheBreaches(db, now), ...recounted(db).map((told) => ({ ...told, deliver_to: null, seq: null }))];
}

/**
 * `ready` is what the view `dispatch_turn` says. `due_at` is the least due time of a destination's ready rows. Each of these rows
 * has its destination. `flight` lies between the live claims and all that are delivering.
 */
function cacheBreaches(db: Handle, now: number): Breach[] {
  return statement<Breach>(
    db,
    `WITH live AS MATERIALIZED (
       SELECT deliver_to, min(next_attempt_at) FILTER (WHERE ready = 1) AS due_at, count(*) FILTER (WHERE status = 'delivering') AS delivering,
         count(*) FILTER (WHERE status = 'delivering' AND next_attempt_at > $now) AS flying
       FROM main.dispatch_outbox WHERE status IN ('pending', 'delivering') GROUP BY deliver_to)
     SELECT 'ready is not the turn' AS what, o.deliver_to, o.seq, NULL AS counter FROM main.dispatch_outbox o
       WHERE o.status IN ('pending', 'delivering') AND o.ready <> (SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)
     UNION ALL
     SELECT 'due_at is not the first due time', d.deliver_to, NULL, NULL FROM main.dispatch_destinations d LEFT JOIN live l ON l.deliver_to = d.deliver_to
       WHERE d.due_at IS NOT l.due_at
     UNION ALL
     SELECT 'the destination is missing', l.deliver_to, NULL, NULL FROM live l
       WHERE (l.due_at IS NOT NULL OR l.flying > 0) AND NOT EXISTS (SELECT 1 FROM main.dispatch_destinations d WHERE d.deliver_to = l.deliver_to)
     UNION ALL
     SELECT 'flight is not between', d.deliver_to, NULL, NULL FROM main.dispatch_destinations d LEFT JOIN live l ON l.deliver_to = d.deliver_to
       WHERE d.flight NOT BETWEEN coalesce(l.flying, 0) AND coalesce(l.delivering, 0)`,
  ).all({ now });
}
