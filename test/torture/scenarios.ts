/** What is killed: for each thing that the program can be in the middle of, a prepared place, a command and what must come of it. */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { SCHEMA_VERSION } from "../../src/store/migrate.ts";
import { clockAt } from "./clock.ts";
import { broken, NOTHING } from "./laws.ts";
import { BINARY, type Ended, type Given, idsIn, type Site, type Terms } from "./site.ts";

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

export interface Scenario {
  readonly name: string;
  readonly terms?: Terms;
  prepare(site: Site): Promise<Stage>;
}

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];
const LONG_AGO_S = -40 * 86_400;

async function enqueued(site: Site, count: number, more: readonly string[] = [], env?: Given["env"]): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < count; at += 1) ids.push(...idsIn(await site.done([...ENQUEUE, ...more], env === undefined ? {} : { env })));
  return ids;
}

const lines = (count: number, more: (at: number) => Readonly<Record<string, unknown>> = () => ({})): string =>
  Array.from({ length: count }, (_, at) => `${JSON.stringify({ kind: "ping", deliver_to: `seat-${at % 3}`, ...more(at) })}\n`).join("");

const should = (holds: boolean, what: string): string[] => (holds ? [] : [what]);

/** The second answer is the id of the row, and the first one where there was any. */
function sameId({ code, stdout, stderr }: Ended, _: Site, printed: string): string[] {
  const [id] = idsIn(stdout);
  if (code !== 0 || id === undefined) return [`asked again with its key: exit ${code}, ${stderr.trim()}`];
  return idsIn(printed).flatMap((first) => should(first === id, `one key gave two ids: ${first} and ${id}`));
}

/** Rows of a table, as a number. */
function count(site: Site, sql: string): number {
  return site.look((db) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${sql}`).get()?.n ?? 0);
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "the first enqueue",
    prepare: async () => ({ args: [...ENQUEUE, "--dedup-key", "new"], again: sameId }),
  },
  {
    name: "enqueue",
    prepare: async (site) => ({ ids: await enqueued(site, 1), args: [...ENQUEUE, "--dedup-key", "new"], again: sameId }),
  },
  {
    name: "a duplicate",
    async prepare(site) {
      const ids = await enqueued(site, 1, ["--dedup-key", "old"]);
      return { ids, args: [...ENQUEUE, "--dedup-key", "old"], again: sameId, holds: () => should(site.rows().length <= 1, "a second row") };
    },
  },
  {
    name: "a batch",
    async prepare(site) {
      const ids = await enqueued(site, 1);
      return {
        ids,
        args: ["enqueue", "--batch", "-"],
        given: { stdin: lines(6, (at) => ({ dedup_key: `line-${at}` })) },
        holds: (site) => should([1, 7].includes(site.rows().length), `${site.rows().length - 1} of the 6 lines of a batch`),
        again: (second) => should(second.code === 0 && idsIn(second.stdout).length === 6, `the batch again: exit ${second.code}`),
      };
    },
  },
  {
    name: "enqueue --now",
    prepare: async (site) => ({ ids: await enqueued(site, 1), args: [...ENQUEUE, "--dedup-key", "new", "--now"], again: sameId }),
  },
  {
    name: "revive",
    prepare: async (site) => ({
      ids: await enqueued(site, 1),
      args: ["revive", "seat-1", "seat-2", "seat-3", "--reset-epoch", "0"],
      holds: (site) => should([1, 4].includes(site.rows().length), "a part of the seats"),
      again: (second) => should(second.code === 0 && idsIn(second.stdout).length === 3, `revive again: exit ${second.code}`),
    }),
  },
  {
    name: "run: all is taken",
    async prepare(site) {
      const ids = [...(await enqueued(site, 3)), ...(await enqueued(site, 2, ["--ordering-key", "a"]))];
      await site.run([...ENQUEUE, "--expires-at", "1"]); // late: it ends expired
      return { ids, args: ["run", "--once"] };
    },
  },
  {
    name: "run: all fails, attempts are left",
    async prepare(site) {
      const ids = await enqueued(site, 3);
      site.commandsEnd(1);
      return { ids, args: ["run", "--once"] };
    },
  },
  {
    name: "run: the last attempt fails, one is refused for good",
    async prepare(site) {
      const ids = await enqueued(site, 2, ["--max-attempts", "1"]);
      site.commandsEnd(78);
      return { ids, args: ["run", "--once"] };
    },
  },
  {
    name: "run: what a killed runner left",
    terms: { seconds: 30 },
    async prepare(site) {
      const ids = await enqueued(site, 2);
      const runner = Bun.spawn([BINARY, "run", "--once"], { cwd: site.home, env: site.env(), stdio: ["ignore", "ignore", "ignore"] });
      while (site.log().split("\n").length < 3) await Bun.sleep(10);
      runner.kill("SIGKILL");
      await runner.exited;
      endCommandsOf(site);
      site.settings({});
      site.look((db) => db.run("UPDATE dispatch_outbox SET next_attempt_at = next_attempt_at - 3600 WHERE status = 'delivering'"));
      return { ids, args: ["run", "--once"] };
    },
  },
  {
    name: "run: sweeping",
    async prepare(site) {
      const old = await enqueued(site, 3, [], clockAt(LONG_AGO_S));
      await site.done(["run", "--once"], { env: clockAt(LONG_AGO_S) });
      const ids = await enqueued(site, 1);
      return {
        ids,
        args: ["run", "--once"],
        holds(site) {
          const left = site.rows().filter(({ id }) => old.includes(id)).length;
          return should(left === 3 || count(site, "admin_events") > 0, `${3 - left} rows were swept without an audit row`);
        },
      };
    },
  },
  {
    name: "ack",
    async prepare(site) {
      const [line] = (await site.done([...ENQUEUE, "--ack", "--json"])).split("\n");
      const { id, ack_token } = JSON.parse(line ?? "") as { id: string; ack_token: string };
      site.settings({ dispatch: { backoff: { base: "20m" } } });
      await site.done(["run", "--once"]);
      site.settings({});
      return {
        ids: [id],
        args: ["ack", id, ack_token],
        again: (second, site) => [
          ...should(second.code === 0, `ack again: exit ${second.code}`),
          ...should(site.rows()[0]?.status === "acked", "it was acknowledged twice, and is not acked"),
        ],
      };
    },
  },
  {
    name: "retry",
    async prepare(site) {
      const ids = await enqueued(site, 2, ["--max-attempts", "1"]);
      site.commandsEnd(1);
      await site.run(["run", "--once"]);
      site.commandsEnd(0);
      return { ids, args: ["retry", ...ids], holds: audited("retry", ({ reason_code }) => reason_code.endsWith("operator_retry")) };
    },
  },
  {
    name: "cancel",
    async prepare(site) {
      const ids = await enqueued(site, 2);
      return { ids, args: ["cancel", ...ids], holds: audited("cancel", ({ reason_code }) => reason_code.endsWith("cancelled")) };
    },
  },
  {
    name: "purge",
    async prepare(site) {
      const gone = await enqueued(site, 2);
      await site.done(["run", "--once"]);
      const ids = await enqueued(site, 1);
      return {
        ids,
        args: ["purge", ...gone],
        holds(site) {
          const left = site.rows().filter(({ id }) => gone.includes(id)).length;
          return should(count(site, "admin_events") === 2 - left, `${2 - left} rows purged, ${count(site, "admin_events")} audit rows`);
        },
      };
    },
  },
  {
    name: "hold",
    prepare: async (site) => ({
      ids: await enqueued(site, 2),
      args: ["hold", "--to", "seat-1"],
      holds: heldOnce,
      mend: ["resume", "--all"],
    }),
  },
  {
    name: "resume",
    async prepare(site) {
      const ids = await enqueued(site, 2);
      await site.done(["hold", "--to", "seat-1"]);
      return { ids, args: ["resume", "--to", "seat-1"], holds: heldOnce, mend: ["resume", "--all"] };
    },
  },
  {
    name: "retry by filter",
    async prepare(site) {
      const ids = await dead(site, 12);
      return { ids, args: ["retry", "--all"], holds: counted("retry", (site) => moved(site, "operator_retry")) };
    },
  },
  {
    name: "cancel by filter",
    async prepare(site) {
      const ids = idsIn(await site.done(["enqueue", "--batch", "-"], { stdin: lines(12) }));
      return { ids, args: ["cancel", "--kind", "ping"], holds: counted("cancel", (site) => moved(site, "cancelled")) };
    },
  },
  {
    name: "purge by filter",
    async prepare(site) {
      await dead(site, 200);
      const ids = await enqueued(site, 1);
      const purged = (site: Site): number => 200 - site.rows().filter(({ id }) => !ids.includes(id)).length;
      return { ids, args: ["purge", "--status", "dead_letter"], holds: counted("purge", purged) };
    },
  },
  {
    name: "inbox run",
    async prepare(site) {
      const ids = await enqueued(site, 1);
      const work = 'echo done >> "$HOME/handled"';
      // No success without its work. The other way round is what a consumer must bear.
      const holds = (site: Site): string[] =>
        should(handled(site) > 0 || count(site, "dispatch_inbox WHERE done_at IS NOT NULL") === 0, "a success that nobody worked for");
      return {
        ids,
        args: ["inbox", "run", ids[0] ?? "", "--", "/bin/sh", "-c", work],
        holds,
        again: (second, site) => [
          ...should(second.code === 0, `again: exit ${second.code}, ${second.stderr.trim()}`),
          ...should(count(site, "dispatch_inbox WHERE done_at IS NOT NULL") === 1, "its success is not recorded"),
          ...should([1, 2].includes(handled(site)), `worked ${handled(site)} times`),
        ],
      };
    },
  },
  { name: "migrate", prepare: (site) => older(site, ["migrate"]) },
  { name: "an enqueue that brings the schema forward", prepare: (site) => older(site, [...ENQUEUE, "--dedup-key", "new"]) },
];

/** Messages that have died. */
async function dead(site: Site, count: number): Promise<string[]> {
  const stdin = lines(count, () => ({ max_attempts: 1 }));
  const ids = idsIn(await site.done(["enqueue", "--batch", "-"], { stdin }));
  site.commandsEnd(1);
  await site.run(["run", "--once"]);
  site.commandsEnd(0);
  return ids;
}

const moved = (site: Site, reason: string): number => count(site, `status_transitions WHERE reason_code LIKE '%.${reason}'`);

/** A change by filter works in steps: after each its one audit row says how many were changed. */
function counted(action: string, changed: (site: Site) => number): NonNullable<Stage["holds"]> {
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
function handled(site: Site): number {
  const path = join(site.home, "handled");
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
}

/** An operator's change and its audit row are one. */
function audited(action: string, changed: (row: { readonly reason_code: string }) => boolean): NonNullable<Stage["holds"]> {
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
function heldOnce(site: Site): string[] {
  const held = count(site, "dispatch_holds");
  const [put, lifted] = [count(site, "admin_events WHERE action LIKE '%hold%'"), count(site, "admin_events WHERE action LIKE '%resume%'")];
  return should(held === Math.max(0, put - Math.min(lifted, put)), `${held} holds after ${put} put and ${lifted} lifted`);
}

/** Ends the commands that a killed runner left: they have its home in their environment. */
function endCommandsOf(site: Site): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${site.home}`)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // it ended by itself
    }
  }
}

/** A file of the first release: afterwards it is as it was or brought forward, and the copy beside it is whole or not there. */
async function older(site: Site, args: readonly string[]): Promise<Stage> {
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
