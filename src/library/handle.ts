/** Work on a program's own handle: whole or not at all, in its transaction or in one of its own, and only where our tables are. */
import type { Database } from "bun:sqlite";
import { OutboxError } from "../core/errors.ts";
import { ownership, refuseNewer } from "../store/ownership.ts";
import { asTrouble } from "../store/trouble.ts";
import { SCHEMA_VERSION, versionOf } from "../store/version.ts";

/** Runs a change on a database that has our tables. */
export function onOurs<T>(db: Database, change: () => T): T {
  return whole(db, () => {
    checkTables(db);
    return change();
  });
}

/** All of it or nothing: a savepoint in the caller's transaction, else a transaction of its own. */
export function whole<T>(db: Database, body: () => T): T {
  return translated(db, () => db.transaction(body).immediate());
}

export function reading<T>(db: Database, query: () => T): T {
  return translated(db, () => {
    checkTables(db);
    return query();
  });
}

function translated<T>(db: Database, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw asTrouble(error, db.filename);
  }
}

function checkTables(db: Database): void {
  // The usual answer, without a look at all names of the schema.
  if (versionOf(db) === SCHEMA_VERSION) return;
  const owner = ownership(db);
  if (owner.whose !== "ours")
    throw new OutboxError(
      "no",
      `database ${db.filename} has no outbox tables`,
      "add them once with install(db) or `outbox migrate --install`",
    );
  refuseNewer(owner.version, db.filename);
  if (owner.version < SCHEMA_VERSION)
    throw new OutboxError(
      "settings",
      `database ${db.filename} has schema ${owner.version}, this outbox needs ${SCHEMA_VERSION}`,
      "run: outbox migrate",
    );
}
