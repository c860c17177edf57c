/** The counters of migration 0003 beside what they count. For tests and for whoever doubts them: it reads every row and its history. */
import { type Handle, statement } from "./statement.ts";

export interface Miscount {
  readonly what: "the counter is not the count" | "the counter is less than the history tells" | "the counter cannot be";
  /** A name, and kind and reason where it has them. */
  readonly counter: string;
}

type Counter = readonly [counter: string, n: number];

/**
 * Every counter that is wrong. Rows by status, dead letters by reason and open circuits are as many as counted. What ever happened is
 * counted at least as often as the history of the rows that are left tells; that of others went with them. No counter is below 0, and
 * no bound of the lag holds fewer claims than a smaller one.
 */
export function recounted(db: Handle): Miscount[] {
  const counters = new Map([...figures(db), ...rows(db)]);
  const now = new Map(counted(db));
  const of = (map: ReadonlyMap<string, number>, counter: string): number => map.get(counter) ?? 0;
  const dead = [...counters.keys()].filter((counter) => counter.startsWith("dead "));
  const exact = [...new Set([...NOW, ...dead, ...now.keys()])];
  return [
    ...exact
      .filter((counter) => of(counters, counter) !== of(now, counter))
      .map((counter) => ({ what: "the counter is not the count" as const, counter })),
    ...told(db)
      .filter(([counter, n]) => of(counters, counter) < n)
      .map(([counter]) => ({ what: "the counter is less than the history tells" as const, counter })),
    ...impossible(db).map((counter) => ({ what: "the counter cannot be" as const, counter })),
  ];
}

const NOW = ["pending", "delivering", "delivered", "acked", "dead_letter", "expired", "open_circuits"];

function figures(db: Handle): Counter[] {
  const row = statement<Record<string, number>>(
    db,
    `SELECT pending, delivering, delivered, acked, dead_letter, expired, open_circuits FROM main.dispatch_figures WHERE one = 1`,
  ).get({});
  return Object.entries(row ?? {});
}

function rows(db: Handle): Counter[] {
  return counters(
    statement<{ counter: string; n: number }>(
      db,
      `SELECT concat_ws(' ', name, reason, nullif(kind, '')) AS counter, n FROM main.dispatch_counters`,
    ).all({}),
  );
}

/** What there is now. */
function counted(db: Handle): Counter[] {
  return counters(
    statement<{ counter: string; n: number }>(
      db,
      `SELECT status AS counter, count(*) AS n FROM main.dispatch_outbox WHERE status IN ('pending', 'delivering') GROUP BY status
       UNION ALL
       SELECT status, count(*) FROM main.dispatch_outbox WHERE status NOT IN ('pending', 'delivering') GROUP BY status
       UNION ALL
       SELECT 'open_circuits', count(*) FROM main.dispatch_destinations WHERE open_until IS NOT NULL
       UNION ALL
       SELECT 'dead ' || reason_code, count(*) FROM main.dispatch_outbox
       WHERE status NOT IN ('pending', 'delivering') AND status = 'dead_letter' GROUP BY reason_code`,
    ).all({}),
  );
}

/** What the history tells, as migration 0003 reads it. */
function told(db: Handle): Counter[] {
  return counters(
    statement<{ counter: string; n: number }>(
      db,
      `SELECT concat_ws(' ', 'attempts', CASE
           WHEN t.status IN ('delivering', 'expired') OR (t.reason_code = 'dispatch.dead_letter.max_attempts' AND t.actor <> (
             SELECT c.actor FROM main.status_transitions c WHERE c.entity_id = t.entity_id AND c.id < t.id ORDER BY c.id DESC LIMIT 1)) THEN 'lost'
           ELSE t.reason_code END, k.kind) AS counter, count(*) AS n
       FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id LEFT JOIN main.dispatch_kinds k ON k.kind = o.kind
       WHERE t.entity_type = 'dispatch' AND t.previous_status = 'delivering' GROUP BY 1
       UNION ALL
       SELECT concat_ws(' ', 'dead_letters', t.reason_code, k.kind), count(*)
       FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id LEFT JOIN main.dispatch_kinds k ON k.kind = o.kind
       WHERE t.entity_type = 'dispatch' AND t.status = 'dead_letter' GROUP BY 1`,
    ).all({}),
  );
}

function impossible(db: Handle): string[] {
  return statement<{ counter: string }>(
    db,
    `SELECT 'lag' AS counter FROM main.dispatch_figures
     WHERE NOT (lag_sum_s >= 0 AND 0 <= lag_100ms AND lag_100ms <= lag_500ms AND lag_500ms <= lag_1s AND lag_1s <= lag_5s AND lag_5s <= lag_15s
       AND lag_15s <= lag_1m AND lag_1m <= lag_5m AND lag_5m <= lag_15m AND lag_15m <= lag_1h AND lag_1h <= lag_6h
       AND lag_6h <= lag_1d AND lag_1d <= claims)
     UNION ALL
     SELECT concat_ws(' ', name, reason, nullif(kind, '')) FROM main.dispatch_counters
     WHERE n < 0 OR (kind <> '' AND (name = 'dead' OR kind NOT IN (SELECT kind FROM main.dispatch_kinds)))
     UNION ALL
     SELECT 'kinds' WHERE (SELECT count(*) FROM main.dispatch_kinds) > 100`,
  )
    .all({})
    .map(({ counter }) => counter);
}

function counters(found: readonly { readonly counter: string; readonly n: number }[]): Counter[] {
  return found.map(({ counter, n }) => [counter, n]);
}
