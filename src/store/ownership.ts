/** Whose file a database is. Apart from the schema itself, which is large and seldom needed. */
import { OutboxError } from "../core/errors.ts";
import { type Handle, statement } from "./statement.ts";
import { notWhole } from "./unfit.ts";
import { SCHEMA_VERSION, versionOf } from "./version.ts";

export type Ownership =
  /** A file with `dispatch_schema`: ours, at this version. */
  | { readonly whose: "ours"; readonly version: number }
  /** No table at all. */
  | { readonly whose: "nobody" }
  /** Another program's tables, none of ours. */
  | { readonly whose: "foreign" };

/** Whose file this is. Reads only. */
export function ownership(db: Handle): Ownership {
  // One statement, so one moment: between two of them another process may have made its tables.
  const tables = statement<{ all_names: number; ours: number }>(
    db,
    `SELECT count(*) AS all_names, count(*) FILTER (WHERE name = 'dispatch_schema') AS ours FROM main.sqlite_schema`,
  ).get({});
  if (tables?.all_names === 0) return { whose: "nobody" };
  if (tables?.ours !== 1) return { whose: "foreign" };
  const version = versionOf(db);
  if (typeof version !== "number" || !Number.isInteger(version) || version < 0) {
    const [kind, what, hint] = notWhole("dispatch_schema holds no version");
    throw new OutboxError(kind, `database ${db.filename}${what}`, hint);
  }
  return { whose: "ours", version };
}

/** @throws OutboxError `settings`: the file is newer than this binary, and stays untouched. */
export function refuseNewer(version: number, path: string, known: number = SCHEMA_VERSION): void {
  if (version > known)
    throw new OutboxError(
      "settings",
      `database ${path} has schema ${version}, this outbox knows up to ${known}`,
      "use the newer outbox; the file was left untouched",
    );
}
