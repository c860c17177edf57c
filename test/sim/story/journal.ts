/**
 * What happened to the tables, written down by triggers of the simulation in a TEMP table: a second witness beside the history that
 * the outbox keeps itself. It is rolled back with what it tells.
 */
import type { Database } from "bun:sqlite";

/** A row of `dispatch_outbox`, as far as the judge looks at it. */
export interface Row {
  readonly seq: number;
  readonly id: string;
  readonly kind: string;
  readonly deliver_to: string;
  readonly dedup_key: string | null;
  readonly ordering_key: string | null;
  readonly status: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly next_attempt_at: number;
  readonly ack_required: number;
  readonly ack_token: string | null;
  readonly lock_token: string | null;
  readonly holder: string | null;
  readonly expires_at: number | null;
  readonly updated_at: number;
  readonly reason_code: string;
}

export interface HoldRow {
  readonly id: number;
  readonly deliver_to: string | null;
  readonly kind: string | null;
  readonly ordering_key: string | null;
  readonly ends_at: number | null;
}

export interface AuditRow {
  readonly id: number;
  readonly action: string;
  readonly target_id: string | null;
  readonly details: string;
}

export interface CircuitRow {
  readonly deliver_to: string;
  readonly failures: number;
  readonly open_until: number | null;
}

export interface InboxRow {
  readonly consumer: string;
  readonly dispatch_id: string;
  readonly holder: string | null;
  readonly token: string | null;
  readonly done_at: number | null;
}

export type Entry =
  | { readonly what: "row"; readonly was: Row | null; readonly is: Row | null }
  | { readonly what: "hold"; readonly was: HoldRow | null; readonly is: HoldRow | null }
  | { readonly what: "circuit"; readonly was: CircuitRow | null; readonly is: CircuitRow | null }
  | { readonly what: "inbox"; readonly was: InboxRow | null; readonly is: InboxRow | null }
  | { readonly what: "audit"; readonly was: AuditRow | null; readonly is: AuditRow | null };

const COLUMNS = {
  dispatch_outbox:
    "seq id kind deliver_to dedup_key ordering_key status attempt max_attempts next_attempt_at ack_required ack_token lock_token holder expires_at updated_at reason_code",
  dispatch_holds: "id deliver_to kind ordering_key ends_at",
  dispatch_destinations: "deliver_to failures open_until",
  dispatch_inbox: "consumer dispatch_id holder token done_at",
  admin_events: "id action target_id details",
} as const;

const WATCHED: readonly (readonly [what: Entry["what"], table: keyof typeof COLUMNS, of: string])[] = [
  ["row", "dispatch_outbox", "OF status, attempt, lock_token, next_attempt_at, reason_code, updated_at, expires_at, max_attempts, holder"],
  ["hold", "dispatch_holds", "OF ends_at"],
  ["circuit", "dispatch_destinations", "OF failures, open_until"],
  ["inbox", "dispatch_inbox", ""],
  ["audit", "admin_events", ""],
];

/** Begins to watch. */
export function watch(db: Database): void {
  db.run('CREATE TEMP TABLE sim_seen (n INTEGER PRIMARY KEY, what TEXT, was TEXT, "is" TEXT)');
  for (const [what, table, of] of WATCHED) {
    const text = (alias: string): string =>
      `json_object(${COLUMNS[table]
        .split(" ")
        .map((column) => `'${column}', ${alias}.${column}`)
        .join(", ")})`;
    const note = (was: string, is: string): string => `INSERT INTO sim_seen (what, was, "is") VALUES ('${what}', ${was}, ${is}); END`;
    db.run(`CREATE TEMP TRIGGER sim_${what}_enters AFTER INSERT ON main.${table} BEGIN ${note("NULL", text("NEW"))}`);
    db.run(`CREATE TEMP TRIGGER sim_${what}_moves AFTER UPDATE ${of} ON main.${table} BEGIN ${note(text("OLD"), text("NEW"))}`);
    db.run(`CREATE TEMP TRIGGER sim_${what}_leaves AFTER DELETE ON main.${table} BEGIN ${note(text("OLD"), "NULL")}`);
  }
}

/** What was written down after entry `n`, in order, with the number of the last. */
export function seenSince(db: Database, n: number): { readonly entries: readonly Entry[]; readonly last: number } {
  const rows = db
    .query<{ n: number; what: Entry["what"]; was: string | null; is: string | null }, [number]>(
      `SELECT n, what, was, "is" FROM sim_seen WHERE n > ? ORDER BY n`,
    )
    .all(n);
  const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));
  return {
    entries: rows.map(({ what, was, is }) => ({ what, was: parsed(was), is: parsed(is) }) as Entry),
    last: rows.at(-1)?.n ?? n,
  };
}
