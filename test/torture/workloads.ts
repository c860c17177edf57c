/** What is recorded for the power loss: runs of the program, with what it did to the disk and what it had answered when. */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { clockAt } from "./clock.ts";
import type { Change, Image } from "./disk.ts";
import { type Move, movesOf, notesOf, type Promised, type Row, rowsOf, type Told } from "./laws.ts";
import { type Event, eventsOf, recorded } from "./recording.ts";
import { BINARY, idsIn, Site, type Terms } from "./site.ts";

/** One recorded command: arguments of outbox, or a line of sh that calls `outbox`. */
export interface Step {
  readonly args?: readonly string[];
  readonly sh?: string;
  readonly stdin?: string;
  /** How far the clock is ahead. */
  readonly aheadS?: number;
  /** With which code the commands of the transport end. */
  readonly commandsEnd?: number;
}

export interface Workload {
  readonly name: string;
  readonly terms?: Terms;
  /** Its part of the images. */
  readonly share: number;
  /** Done before, unrecorded. */
  readonly before?: (site: Site) => Promise<void>;
  steps(site: Site): readonly Step[];
  /** Whether a file of an older schema is brought forward in it. */
  readonly migrates?: true;
}

/** Something answered: from which change on it must survive, and from which on it may go or must be gone. */
export interface Answered {
  readonly from: number;
  readonly until: number;
  readonly id?: string;
  readonly move?: Told;
  readonly gone?: string;
}

export interface Recording {
  readonly name: string;
  readonly home: string;
  readonly database: string;
  readonly given: Image;
  readonly changes: readonly Change[];
  readonly answers: readonly Answered[];
  readonly share: number;
  readonly migrates: boolean;
}

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];
const lines = (count: number, length = 1): string =>
  Array.from(
    { length: count },
    (_, at) => `${JSON.stringify({ kind: "ping", deliver_to: `seat-${at % 5}`, body: { pad: "x".repeat(length) } })}\n`,
  ).join("");

/** A runner in the background while a line runs, then ended in order. */
const beside = (line: string): string => `outbox run & runner=$!; ${line}; kill -TERM $runner; wait $runner`;

export const WORKLOADS: readonly Workload[] = [
  {
    name: "the first enqueues",
    share: 3,
    steps: () => [
      { args: [...ENQUEUE, "--dedup-key", "one"] },
      { args: [...ENQUEUE, "--body", JSON.stringify({ pad: "x".repeat(9_000) })] },
      { args: [...ENQUEUE, "--dedup-key", "one"] },
      { args: ["run", "--once"] },
    ],
  },
  {
    name: "a batch and its runs",
    share: 2,
    steps: () => [
      { args: ["enqueue", "--batch", "-"], stdin: lines(6, 700) },
      { args: ["run", "--once"], commandsEnd: 1 },
      { args: [...ENQUEUE, "--now"], commandsEnd: 0 },
      { args: ["run", "--once"] },
      { args: ["revive", "seat-1", "seat-2", "--reset-epoch", "0"] },
      { args: ["run", "--once"], commandsEnd: 78 },
    ],
  },
  {
    name: "enqueues beside a runner",
    share: 2,
    before: async (site) => void (await site.done(ENQUEUE)),
    steps: () => {
      const one = `outbox ${ENQUEUE.join(" ")}`;
      return [{ sh: beside(`${one}; ${one} --text-file /etc/services; ${one}; (${one} & ${one} & wait); sleep 0.5`) }];
    },
  },
  {
    name: "acknowledged, and by operators",
    share: 2,
    terms: { maxAttempts: 1 },
    async before(site) {
      for (let at = 0; at < 3; at += 1) await site.done(ENQUEUE);
      site.commandsEnd(1);
      await site.run(["run", "--once"]);
      site.commandsEnd(0);
      await site.done([...ENQUEUE, "--ack", "--json"]);
      await site.done(ENQUEUE);
    },
    steps(site) {
      const [first, second, third, waiting, last] = site.rows().map(({ id }) => id);
      const ids = [first, second, third, waiting, last].map((id) => id ?? "");
      const token = site.look(
        (db) => db.query<{ ack_token: string }, []>("SELECT ack_token FROM dispatch_outbox WHERE ack_required = 1").get()?.ack_token ?? "",
      );
      return [
        { args: ["retry", ids[0] ?? ""] },
        { args: ["ack", ids[3] ?? "", token] },
        { args: ["cancel", ids[4] ?? ""] },
        { args: ["hold", "--to", "seat-1"] },
        { args: ["run", "--once"] },
        { args: ["resume", "--all"] },
        { args: ["purge", ids[1] ?? ""] },
        { args: ["run", "--once"] },
        { args: ["run", "--once"], aheadS: 40 * 86_400 }, // sweeps
      ];
    },
  },
  {
    name: "a log that is copied into its database while it grows",
    share: 1,
    terms: { dispatch: { concurrency: 2 } },
    before: async (site) => void (await site.done(["enqueue", "--batch", "-"], { stdin: lines(90, 10) })),
    steps: () => [
      { sh: beside(`while outbox stats --json | grep -qv '"pending":0'; do sleep 0.2; done; outbox ${ENQUEUE.join(" ")}; sleep 0.3`) },
    ],
  },
  {
    name: "an older schema brought forward",
    share: 1,
    migrates: true,
    async before(site) {
      mkdirSync(dirname(site.database), { recursive: true, mode: 0o700 });
      copyFileSync(join(import.meta.dir, "../fixtures/releases/0.1.0/outbox.db"), site.database);
    },
    steps: () => [{ args: ["migrate"] }, { args: ENQUEUE }],
  },
];

/** Runs a workload and writes down what happened. @throws Error when the recording has a gap */
export async function record(workload: Workload, scratch: string): Promise<Recording> {
  const site = Site.make(scratch, workload.terms);
  try {
    await workload.before?.(site);
    const given = filesOf(site);
    const changes: Change[] = [];
    const answers: Answered[] = [];
    let known = truth(site, scratch);
    answers.push(...known.rows.map(({ id }) => ({ from: 0, until: Infinity, id })));
    answers.push(...known.moves.map((move) => ({ from: 0, until: Infinity, move: told(move) })));
    for (const step of workload.steps(site)) {
      const events = await perform(site, step);
      const next = truth(site, scratch);
      const begin = changes.length;
      const seen: { readonly at: number; readonly event: Event }[] = [];
      for (const event of events)
        if (event.kind === "printed" || event.kind === "noted") seen.push({ at: changes.length, event });
        else changes.push(event);
      // What this step deleted may be gone from its begin on, and must be from its end on.
      const there = new Set(next.rows.map(({ id }) => id));
      const deleted = new Set(known.rows.map(({ id }) => id).filter((id) => !there.has(id)));
      for (const [at, answer] of answers.entries())
        if (deleted.has(answer.id ?? answer.move?.id ?? "")) answers[at] = { ...answer, until: Math.min(answer.until, begin) };
      answers.push(...[...deleted].map((gone) => ({ from: changes.length, until: Infinity, gone })));
      answers.push(...hearsay(known, next, seen, changes.length));
      known = next;
    }
    const { home, database } = site;
    return { name: workload.name, home, database, given, changes, answers, share: workload.share, migrates: workload.migrates === true };
  } finally {
    site.remove();
  }
}

async function perform(site: Site, step: Step): Promise<Event[]> {
  if (step.commandsEnd !== undefined) site.commandsEnd(step.commandsEnd);
  const trace = join(site.home, "trace");
  const env = { PATH: `${dirname(BINARY)}:/usr/bin:/bin`, ...(step.aheadS === undefined ? {} : clockAt(step.aheadS)) };
  const command = step.sh === undefined ? [BINARY, ...(step.args ?? [])] : ["/bin/sh", "-c", step.sh];
  const child = Bun.spawn([...recorded(trace), ...command], {
    cwd: site.home,
    env: site.env(env),
    stdin: new Blob([step.stdin ?? ""]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stderr, printed] = await Promise.all([child.stderr.text(), child.stdout.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: exit ${child.exitCode}\n${stderr}${printed}`);
  const events = eventsOf(readFileSync(trace, "utf8"), { home: site.home, database: site.database, log: join(site.home, "log") });
  rmSync(trace);
  const seen = events.flatMap((event) => (event.kind === "printed" ? idsIn(event.text) : []));
  for (const id of idsIn(printed)) if (!seen.includes(id)) throw new Error(`the answer ${id} was not seen`);
  return events;
}

interface Truth {
  readonly rows: readonly Row[];
  readonly moves: readonly (Move & { readonly number: number })[];
}

/** What the database holds now, read from a copy: to open it would change it. */
function truth(site: Site, scratch: string): Truth {
  if (!existsSync(site.database)) return { rows: [], moves: [] };
  const copy = join(scratch, `truth-${crypto.randomUUID()}.db`);
  const files = ["", "-wal", "-journal"].filter((suffix) => existsSync(`${site.database}${suffix}`));
  for (const suffix of files) copyFileSync(`${site.database}${suffix}`, `${copy}${suffix}`);
  const db = new Database(copy, { strict: true });
  try {
    const numbers = db.query<{ id: number }, []>("SELECT id FROM status_transitions WHERE entity_type = 'dispatch' ORDER BY id").all();
    return { rows: rowsOf(db), moves: movesOf(db).map((move, at) => ({ ...move, number: numbers[at]?.id ?? 0 })) };
  } finally {
    db.close();
    for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${copy}${suffix}`, { force: true });
  }
}

const told = ({ entity_id, reason_code, attempt }: Move): Told => ({ id: entity_id, reason: reason_code, attempt });

/** Every row and move that a step added, from the moment on that somebody heard of it, at the latest from its end. */
function hearsay(known: Truth, next: Truth, seen: readonly { readonly at: number; readonly event: Event }[], end: number): Answered[] {
  const old = new Set(known.rows.map(({ id }) => id));
  const last = known.moves.at(-1)?.number ?? 0;
  const added = next.moves.filter(({ number }) => number > last);
  const heard = new Map<number, number>();
  const hear = (at: number, is: (move: Move) => boolean): void => {
    const move = added.find((move) => is(move) && !heard.has(move.number));
    if (move !== undefined) heard.set(move.number, at);
  };
  const ids = new Map<string, number>();
  for (const { at, event } of seen) {
    if (event.kind === "printed") {
      for (const id of idsIn(event.text)) if (!ids.has(id)) ids.set(id, at);
      for (const line of event.text.split("\n")) {
        const [, seq, attempt, failed] =
          /^\S+ (?:info|error) +(\d+) \S+ to \S+ (?:(?:delivered|sent, .*) \(attempt (\d+),|attempt (\d+) of)/.exec(line) ?? [];
        const id = next.rows.find((row) => row.seq === Number(seq))?.id;
        if (id === undefined) continue;
        const reason = failed === undefined ? "dispatch.delivered.transport_ok" : "dispatch.pending.retry_backoff";
        hear(at, (move) => move.entity_id === id && move.reason_code === reason && move.attempt === Number(attempt ?? failed));
      }
    }
    // A command that started proves its claim.
    if (event.kind === "noted")
      for (const note of notesOf(event.text))
        if (note.what === "start")
          hear(at, ({ entity_id, status, attempt }) => entity_id === note.id && status === "delivering" && attempt === note.attempt);
  }
  return [
    ...next.rows.filter(({ id }) => !old.has(id)).map(({ id }) => ({ from: ids.get(id) ?? end, until: Infinity, id })),
    ...added.map((move) => ({ from: heard.get(move.number) ?? end, until: Infinity, move: told(move) })),
  ];
}

/** What must hold of an image after so many changes. */
export function promisedAt(answers: readonly Answered[], changes: number): Promised {
  const now = answers.filter(({ from, until }) => from <= changes && changes <= until);
  return {
    ids: now.flatMap(({ id }) => id ?? []),
    moves: now.flatMap(({ move }) => move ?? []),
    gone: now.flatMap(({ gone }) => gone ?? []),
  };
}

/** The database and its companions as they are; the shared index is no part of the disk. */
function filesOf(site: Site): Image {
  const directory = dirname(site.database);
  if (!existsSync(directory)) return new Map();
  const names = readdirSync(directory).filter((name) => name.startsWith(basename(site.database)) && !name.endsWith("-shm"));
  return new Map(names.map((name) => [join(directory, name), new Uint8Array(readFileSync(join(directory, name)))]));
}
