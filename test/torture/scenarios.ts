/** What is killed: for each thing that the program can be in the middle of, a prepared place, a command and what must come of it. */
import { clockAt } from "./clock.ts";
import { BINARY, idsIn, type Site, type Terms } from "./site.ts";
import {
  audited,
  count,
  counted,
  dead,
  endCommandsOf,
  ENQUEUE,
  enqueued,
  handled,
  heldOnce,
  lines,
  moved,
  older,
  sameId,
  should,
  type Stage,
} from "./stages.ts";

export interface Scenario {
  readonly name: string;
  readonly terms?: Terms;
  prepare(site: Site): Promise<Stage>;
}

const LONG_AGO_S = -40 * 86_400;

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
      await dead(site, 60);
      const ids = await enqueued(site, 1);
      const purged = (site: Site): number => 60 - site.rows().filter(({ id }) => !ids.includes(id)).length;
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
