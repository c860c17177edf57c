/** The number of the schema, and where a database keeps its own. Apart from the schema itself, which is large and seldom needed. */
import { type Handle, statement } from "./statement.ts";

/** The schema that this binary writes: as many steps as `migrate.ts` has, as a test holds. */
export const SCHEMA_VERSION: number = 5;

/** The schema that a database of ours has; null: it has no such table, so it may be anybody's. */
export function versionOf(db: Handle): unknown {
  try {
    return statement<{ version: unknown }>(db, `SELECT version FROM main.dispatch_schema`).get({})?.version ?? null;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("no such table")) return null;
    throw error;
  }
}
