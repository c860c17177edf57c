/** What a process of outbox costs from start to end: goals 1 to 4 and 12. */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { bareOnOurs, type Place, shellOnOurs, shellOnPlain } from "./place.ts";
import type { Line } from "./report.ts";
import { type Cost, median, ratio, rounds, type Side } from "./rounds.ts";

export async function starts(place: Place, count: number): Promise<readonly Line[]> {
  const [held, alone] = [place.file("held.db"), place.file("alone.db")];
  for (const db of [held, alone]) place.run(place.enqueue(db));
  const runner = Bun.spawn([...place.outbox("run", "--db", held).argv], {
    env: place.env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  await Bun.sleep(500);
  try {
    return [...beside(place, held, count), ...byItself(place, alone, count), await memory(place, alone), ...looks(place, alone, count)];
  } finally {
    runner.kill();
    await runner.exited;
  }
}

/** A runner holds our database, so somebody holds those of the shell too. */
function beside(place: Place, db: string, count: number): readonly Line[] {
  const [shells, missing] = shellSides(place, "beside");
  const holders = shells.map(({ argv }) => hold(argv[1] ?? ""));
  const lines = enqueueLines({ goal: 1, when: "a run holds the database", place, db, count, shells, missing, empty: 1.35, shell: 1.8 });
  for (const holder of holders) holder.close();
  return [...lines, syncs(place, { what: "fsyncs, a run holds the database", db, atMost: 3 })];
}

function byItself(place: Place, db: string, count: number): readonly Line[] {
  const [shells, missing] = shellSides(place, "alone");
  const lines = enqueueLines({
    goal: 2,
    when: "nobody else, 10 lines of settings",
    place,
    db,
    count,
    shells,
    missing,
    empty: 1.7,
    shell: 1.6,
  });
  return [...lines, syncs(place, { what: "fsyncs, nobody else", db, atMost: 5 })];
}

interface Enqueues {
  readonly goal: number;
  readonly when: string;
  readonly place: Place;
  readonly db: string;
  readonly count: number;
  readonly shells: readonly Side[];
  readonly missing: string | null;
  readonly empty: number;
  readonly shell: number;
}

function enqueueLines({ goal, when, place, db, count, shells, missing, ...goals }: Enqueues): readonly Line[] {
  const bare = bareOnOurs(place, db);
  const costs = rounds([place.enqueue(db), place.empty, place.emptyAsOurs, bare, ...shells], count);
  const lines = [
    against(goal, `enqueue, ${when}: of an empty program`, costs[0], costs[1], goals.empty),
    informing(against(goal, "enqueue: of an empty program built as outbox", costs[0], costs[2], goals.empty)),
    informing(against(goal, `enqueue: of ${bare.name}`, costs[0], costs[3], goals.empty)),
    informing(against(goal, `${bare.name}: of an empty program`, costs[3], costs[1], goals.empty)),
  ];
  if (missing !== null)
    lines.push({ goal, what: "enqueue: of the sqlite3 shell", value: null, unit: "x", atMost: goals.shell, note: missing });
  for (const [at, shell] of shells.entries()) {
    const line = against(goal, `enqueue: of ${shell.name}`, costs[0], costs[at + 4], goals.shell);
    // The bare tables are no yardstick for what has indexes and rules; they tell how much of it the rules are.
    lines.push(at === 0 ? line : informing(line));
  }
  return lines;
}

function against(goal: number, what: string, own: Cost | undefined, other: Cost | undefined, atMost: number): Line {
  const [wall, cpu] = [ratio(own?.wallMs ?? [], other?.wallMs ?? []), ratio(own?.cpuMs ?? [], other?.cpuMs ?? [])];
  const sides = `${median(own?.wallMs ?? []).toFixed(1)} against ${median(other?.wallMs ?? []).toFixed(1)} ms`;
  return {
    goal,
    what,
    value: wall.median,
    unit: "x",
    atMost,
    note: `${sides}, rounds ${wall.spread}; of processor time ${cpu.median.toFixed(2)}x`,
  };
}

function informing({ atMost: _, ...line }: Line): Line {
  return line;
}

/**
 * Goal 4. What the system tells of a child's peak begins with that of the parent which started it, so the child itself is looked at
 * until it is gone.
 */
async function memory(place: Place, db: string): Promise<Line> {
  const line = { goal: 4, what: "enqueue: peak memory above an empty program", unit: "MiB", atMost: 8 } as const;
  if (process.platform !== "linux") return { ...line, value: null, note: "known on Linux only" };
  const peaks = { ours: [] as number[], empty: [] as number[] };
  for (let turn = 0; turn < 7; turn += 1) {
    peaks.ours.push(await peakMiB(place.enqueue(db)));
    peaks.empty.push(await peakMiB(place.empty));
  }
  const [ours, empty] = [median(peaks.ours), median(peaks.empty)];
  return { ...line, value: ours - empty, note: `${ours.toFixed(1)} against ${empty.toFixed(1)} MiB` };
}

async function peakMiB({ argv, env }: Side): Promise<number> {
  const child = Bun.spawn([...argv], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  let kiB = 0;
  try {
    // It is another program before it is this one, so a look that comes too early tells of the parent.
    for (let name = ""; child.exitCode === null;) {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      name = /^Name:\t(.*)$/m.exec(status)?.[1] ?? "";
      const peak = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
      if (peak === undefined) break;
      if (argv[0]?.endsWith(`/${name}`) === true) kiB = Number(peak);
    }
  } catch {
    // It is gone.
  }
  await child.exited;
  return kiB / 1_024;
}

function shellSides(place: Place, name: string): readonly [readonly Side[], string | null] {
  if (Bun.which("sqlite3") === null) return [[], "the sqlite3 shell is not installed"];
  const ours = place.file(`shell-${name}.db`);
  place.run(place.enqueue(ours));
  return [[shellOnOurs(place, ours), shellOnPlain(place, place.file(`bare-${name}.db`))], null];
}

/** A reader that keeps a database open, as a runner does, so that nobody's close has to empty its log. */
function hold(db: string): Database {
  const handle = new Database(db, { readwrite: true, create: false });
  handle.query("SELECT count(*) FROM sqlite_schema").get();
  return handle;
}

function syncs(place: Place, { what, db, atMost }: { readonly what: string; readonly db: string; readonly atMost: number }): Line {
  const line = { goal: 3, what, unit: "", atMost, atLeast: 1 } as const;
  if (Bun.which("strace") === null) return { ...line, value: null, note: "strace is not installed" };
  const counts = Array.from({ length: 9 }, () => {
    const trace = place.file("trace");
    const { argv, env } = place.enqueue(db);
    place.run({ name: "strace", argv: ["strace", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync", ...argv], env });
    return readFileSync(trace, "utf8")
      .split("\n")
      .filter((text) => / f(data)?sync\(/.test(text)).length;
  });
  // Now and then one empties the log, for all that came before it.
  return { ...line, value: median(counts), note: `counted with strace: ${counts.join(", ")}` };
}

/** Goal 12: commands that print. */
function looks(place: Place, db: string, count: number): readonly Line[] {
  const [, row] = place.run(place.outbox("ls", "--db", db, "--limit", "1", "--json")).match(/"seq":(\d+)/) ?? [];
  const sides = [place.outbox("--help"), place.outbox("ls", "--db", db), place.outbox("show", row ?? "1", "--db", db)];
  const costs = rounds([place.empty, ...sides], count);
  return sides.map(({ name }, at) => against(12, `${name}, of an empty program`, costs[at + 1], costs[0], 2.5));
}
