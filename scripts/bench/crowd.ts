/** Many at once: eight shells that enqueue (goal 5), and enqueuers that are killed (goal 11). */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import type { Place } from "./place.ts";
import type { Line } from "./report.ts";
import { median, quantile, shuffled, type Side } from "./rounds.ts";

const SHELLS = 8;
const EACH = 6;

export async function crowd(place: Place, count: number): Promise<readonly Line[]> {
  const db = place.file("crowd.db");
  place.run(place.enqueue(db));
  const shell: Side | null =
    Bun.which("sqlite3") === null
      ? null
      : {
          name: "sqlite3",
          argv: ["sqlite3", db, "UPDATE dispatch_holds SET note = note; UPDATE dispatch_figures SET one = one"],
          env: place.env,
        };
  const times = { outbox: [] as number[], empty: [] as number[] };
  let printed = 0;
  let errors = 0;
  for (let round = 0; round < count; round += 1)
    for (const who of shuffled(["outbox", "empty"] as const)) {
      const ran = await together(place, who === "outbox" ? place.enqueue(db) : place.empty);
      times[who].push(ran.ms);
      if (who !== "outbox") continue;
      printed += ran.lines;
      errors += ran.errors;
    }
  const rates = times.empty.map((ms, at) => ms / (times.outbox[at] ?? Number.NaN));
  const lost = printed + 1 - rowsIn(db).size;
  const perS = (ms: readonly number[]): string => ((SHELLS * EACH * 1_000) / median(ms)).toFixed(0);
  const locks =
    shell === null ? "the sqlite3 shell is not installed" : `the sqlite3 shell: ${(await together(place, shell)).errors} lock errors`;
  return [
    {
      goal: 5,
      what: `${SHELLS} shells enqueue at once: of starting an empty program`,
      value: median(rates),
      unit: "x",
      atLeast: 0.65,
      note: `${perS(times.outbox)} against ${perS(times.empty)} a second, rounds ${quantile(rates, 0.1).toFixed(2)}-${quantile(rates, 0.9).toFixed(2)}`,
    },
    {
      goal: 5,
      what: "errors and lost rows of those",
      value: errors + Math.abs(lost),
      unit: "",
      atMost: 0,
      note: `${printed} ids; ${locks}`,
    },
  ];
}

/** Each of the shells runs it again and again. Counts what they printed and what failed. */
async function together(place: Place, side: Side): Promise<{ readonly ms: number; readonly lines: number; readonly errors: number }> {
  const script = `i=0; while [ $i -lt ${EACH} ]; do "$@" || echo failed >&2; i=$((i+1)); done`;
  const started = performance.now();
  const shells = Array.from({ length: SHELLS }, () =>
    Bun.spawn(["/bin/sh", "-c", script, "sh", ...side.argv], { env: place.env, stdin: "ignore", stdout: "pipe", stderr: "pipe" }),
  );
  const said = await Promise.all(shells.map(async ({ stdout, stderr }) => [await stdout.text(), await stderr.text()] as const));
  await Promise.all(shells.map(({ exited }) => exited));
  const count = (text: string, what: RegExp): number => text.split("\n").filter((line) => what.test(line)).length;
  return {
    ms: performance.now() - started,
    lines: said.reduce((sum, [out]) => sum + count(out, /./), 0),
    errors: said.reduce((sum, [, err]) => sum + count(err, /failed/), 0),
  };
}

function rowsIn(db: string): ReadonlySet<string> {
  using handle = new Database(db, { readonly: true });
  return new Set(
    handle
      .query<{ id: string }, []>("SELECT id FROM dispatch_outbox")
      .all()
      .map(({ id }) => id),
  );
}

/** Enqueuers that are killed at any moment: whatever was printed must be there. Power cuts are what test/system and its shims try. */
export async function losses(place: Place, count: number): Promise<readonly Line[]> {
  const [db, log] = [place.file("killed.db"), place.file("printed")];
  place.run(place.enqueue(db));
  const { argv } = place.enqueue(db);
  let killed = 0;
  const began = performance.now();
  place.run(place.enqueue(db));
  const usualMs = performance.now() - began;
  for (let round = 0; round < count; round += 1) {
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn(["/bin/sh", "-c", `exec "$@" >> ${log}`, "sh", ...argv], { env: place.env, stdin: "ignore", stderr: "ignore" }),
    );
    for (const child of shuffled(children)) {
      await Bun.sleep(Math.random() * usualMs * 0.8); // some before they began, some after they answered
      child.kill("SIGKILL");
    }
    for (const child of children) if ((await child.exited) !== 0) killed += 1;
  }
  const rows = rowsIn(db);
  const printed = readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => line.length === 32);
  const missing = printed.filter((id) => !rows.has(id)).length;
  return [
    {
      goal: 11,
      what: "acknowledged and missing after kill -9",
      value: missing,
      unit: "",
      atMost: 0,
      note: `${count * 4} enqueuers, ${killed} killed, ${printed.length} ids printed`,
    },
  ];
}
