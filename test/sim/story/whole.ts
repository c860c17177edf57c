/** What must hold of the tables as they stand, whatever led to it. */
import type { Database } from "bun:sqlite";
import type { State } from "./state.ts";

interface Standing {
  readonly seq: number;
  readonly status: string;
  readonly token: string | null;
}

interface Told {
  readonly previous_status: string | null;
  readonly status: string;
  readonly reason_code: string;
  readonly created_at: number;
}

/**
 * @param touched the rows that the last transaction moved
 * @returns what is wrong; null when nothing is
 */
export function wrongWhole(db: Database, state: State, touched: ReadonlySet<number>): string | null {
  return wrongRows(db, state) ?? wrongHistory(db, state, touched) ?? wrongCounters(db, state);
}

/** No row but those that are known, and each as it is known: nothing was lost, or changed unseen. */
function wrongRows(db: Database, state: State): string | null {
  const standing = db.query<Standing, []>("SELECT seq, status, lock_token AS token FROM dispatch_outbox").all();
  if (standing.length !== state.rows.size) return `${state.rows.size} rows were committed, ${standing.length} are there`;
  for (const { seq, status, token } of standing) {
    const known = state.rows.get(seq);
    if (known?.status !== status || known.lock_token !== token)
      return `row ${seq} is ${status}, and was ${known?.status ?? "never entered"}`;
  }
  return null;
}

/** One history row a move, each beginning where the one before ended, the last one where the row is. */
function wrongHistory(db: Database, state: State, touched: ReadonlySet<number>): string | null {
  for (const seq of touched) {
    const row = state.rows.get(seq);
    if (row === undefined) continue;
    const told = db
      .query<Told, [string]>(
        "SELECT previous_status, status, reason_code, created_at FROM status_transitions WHERE entity_id = ? ORDER BY id",
      )
      .all(row.id);
    const moves = state.tallies.get(seq)?.moves ?? 0;
    if (told.length !== moves) return `row ${seq} made ${moves} moves, its history tells ${told.length}`;
    const broken = told.find(({ previous_status }, at) => previous_status !== (told[at - 1]?.status ?? null));
    if (broken !== undefined) return `the history of row ${seq} is broken at ${broken.reason_code}`;
    const last = told.at(-1);
    if (last?.status !== row.status || last.reason_code !== row.reason_code || last.created_at !== row.updated_at)
      return `row ${seq} is ${row.status} (${row.reason_code}), its history ends ${last?.status} (${last?.reason_code})`;
  }
  const orphans = db
    .query<{ n: number }, []>("SELECT count(*) AS n FROM status_transitions WHERE entity_id NOT IN (SELECT id FROM dispatch_outbox)")
    .get();
  return orphans?.n === 0 ? null : `${orphans?.n} history rows belong to no row`;
}

/** The figures that are kept by trigger are those that counting gives. */
function wrongCounters(db: Database, state: State): string | null {
  const kept = db.query<Record<string, number>, []>("SELECT * FROM dispatch_figures").get() ?? {};
  const rows = [...state.rows.values()];
  const open = [...state.circuits.values()].filter(({ open_until }) => open_until !== null).length;
  const counted: Record<string, number> = { claims: state.claimed, open_circuits: open };
  for (const status of ["pending", "delivering", "delivered", "acked", "dead_letter", "expired"])
    counted[status] = rows.filter((row) => row.status === status).length;
  for (const [what, n] of Object.entries(counted)) if (kept[what] !== n) return `${what}: ${n} there are, ${kept[what]} are in the figures`;
  const sums = db.query<{ name: string; n: number }, []>("SELECT name, sum(n) AS n FROM dispatch_counters GROUP BY name").all();
  const of = (name: string): number => sums.find((each) => each.name === name)?.n ?? 0;
  if (of("dead") !== counted["dead_letter"]) return `${counted["dead_letter"]} rows are dead, ${of("dead")} are counted by reason`;
  return of("attempts") === state.attempts ? null : `${state.attempts} attempts ended, ${of("attempts")} are counted`;
}
