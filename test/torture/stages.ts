/** What scenarios have in common: messages to begin with, and what must hold of them whenever the program was killed. */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { broken, NOTHING } from "./laws.ts";
import { type Ended, type Given, idsIn, type Site } from "./site.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";

/** A scenario whose place is ready. */
export interface Stage {
  readonly args: readonly string[];
  readonly given?: Given;
  /** What was answered before, and must be there whatever happens. */
  readonly ids?: readonly string[];
  /** Whether its caller asks again after a crash, and what the second answer must be, given what the first run printed. */
  readonly again?: (second: Ended, site: Site, printed: string) => string[];
  /** What else must hold, right after the crash and at the end. */
  readonly holds?: (site: Site) => string[];
  /** What a person does before the rest can come to its end. */
  readonly mend?: readonly string[];
}

export const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

export async function enqueued(site: Site, count: number, more: readonly string[] = [], env?: Given["env"]): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < count; at += 1) ids.push(...idsIn(await site.done([...ENQUEUE, ...more], env === undefined ? {} : { env })));
  return ids;
}

export const lines = (count: number, more: (at: number) => Readonly<Record<string, unknown>> = () => ({})): string =>
  Array.from({ length: count }, (_, at) => `${JSON.stringify({ kind: "ping", deliver_to: `seat-${at % 3}`, ...more(at) })}\n`).join("");

export const should = (holds: boolean, what: string): string[] => (holds ? [] : [what]);

/** The second answer is the id of the row, and the first one where there was any. */
export function sameId({ code, stdout, stderr }: Ended, _: Site, printed: string): string[] {
  const [id] = idsIn(stdout);
  if (code !== 0 || id === undefined) return [`asked again with its key: exit ${code}, ${stderr.trim()}`];
  return idsIn(printed).flatMap((first) => should(first === id, `one key gave two ids: ${first} and ${id}`));
}

/** Rows of a table, as a number. */
export function count(site: Site, sql: string): number {
  return site.look((db) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${sql}`).get()?.n ?? 0);
}

/** Messages that have died. */
export async function dead(site: Site, count: number): Promise<string[]> {
  const stdin = lines(count, () => ({ max_attempts: 1 }));
  const ids = idsIn(await site.done(["enqueue", "--batch", "-"], { stdin }));
  site.commandsEnd(1);
  await site.run(["run", "--once"]);
  site.commandsEnd(0);
  return ids;
}

export const moved = (site: Site, reason: string): number => count(site, `status_transitions WHERE reason_code LIKE '%.${reason}'`);

/** A change by filter works in steps: after each its one audit row says how many were changed. */
export function counted(action: string, changed: (site: Site) => number): NonNullable<Stage["holds"]> {
  return (site) => {
    const audited = site.look(
      (db) =>
        db
          .query<{ n: number | null }, []>(
            `SELECT sum(json_extract(details, '$.changed')) AS n FROM admin_events WHERE action = 'dispatch.${action}'`,
          )
          .get()?.n ?? 0,
    );
    return should(audited === changed(site), `${changed(site)} changed, the audit row says ${audited}`);
  };
}

/** How often the consumer's work was done. */
export function handled(site: Site): number {
  const path = join(site.home, "handled");
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
}

/** An operator's change and its audit row are one. */
export function audited(action: string, changed: (row: { readonly reason_code: string }) => boolean): NonNullable<Stage["holds"]> {
  return (site) => {
    const rows = site.rows();
    const audit = count(site, `admin_events WHERE action LIKE '%${action}%'`);
    const done = count(site, `status_transitions WHERE reason_code LIKE '%${action === "cancel" ? "cancelled" : "operator_retry"}'`);
    return [
      ...should(rows.filter(changed).length <= audit, `a ${action} without an audit row`),
      ...should(audit === done, `${audit} audit rows, ${done} moves`),
    ];
  };
}

/** A hold stands if and only if it was put and not lifted. */
export function heldOnce(site: Site): string[] {
  const held = count(site, "dispatch_holds");
  const [put, lifted] = [count(site, "admin_events WHERE action LIKE '%hold%'"), count(site, "admin_events WHERE action LIKE '%resume%'")];
  return should(held === Math.max(0, put - Math.min(lifted, put)), `${held} holds after ${put} put and ${lifted} lifted`);
}

/** Ends the commands that a killed runner left: they have its home in their environment. */
export function endCommandsOf(site: Site): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${site.home}`)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // it ended by itself
    }
  }
}

/** A file of the first release: afterwards it is as it was or brought forward, and the copy beside it is whole or not there. */
export async function older(site: Site, args: readonly string[]): Promise<Stage> {
  mkdirSync(dirname(site.database), { recursive: true, mode: 0o700 });
  copyFileSync(join(import.meta.dir, "../fixtures/releases/0.1.0/outbox.db"), site.database);
  // The commands of that time noted nothing here.
  for (const { id, status, attempt } of site.rows())
    if (status === "delivered") site.note(`start ${id} ${attempt} 0\nend ${id} ${attempt} 0 0\n`);
  return {
    args,
    ids: site.rows().map(({ id }) => id),
    again: ({ code, stderr }) => should(code === 0, `again: exit ${code}, ${stderr}`),
    holds: (site) => migrated(site.database),
  };
}

/** Whole before or whole after, with a whole copy of before where it was changed. */
export function migrated(database: string): string[] {
  const versionOf = (path: string): number | null => {
    const db = new Database(path, { readwrite: true, create: false });
    try {
      const found = broken(db, 0, NOTHING);
      if (found.length > 0) return null;
      return db.query<{ version: number }, []>("SELECT version FROM dispatch_schema").get()?.version ?? null;
    } finally {
      db.close();
    }
  };
  const copy = `${database}.schema-1.backup`;
  const version = versionOf(database);
  return [
    ...should(version === 1 || version === SCHEMA_VERSION, `half brought forward: version ${version}`),
    ...should(version === 1 || existsSync(copy), "brought forward without a copy"),
    ...should(!existsSync(copy) || (versionOf(copy) === 1 && (statSync(copy).mode & 0o777) === 0o600), "the copy is not whole"),
  ];
}
