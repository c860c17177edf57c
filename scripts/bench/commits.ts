/** Durable commits within a program, beside what the disk alone allows (goal 7), and beside what peers do as durably. */
import { Database } from "bun:sqlite";
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { enqueue, install } from "../../src/index.ts";
import { peers } from "./peers.ts";
import type { Place } from "./place.ts";
import type { Line } from "./report.ts";
import { median, quantile, shuffled } from "./rounds.ts";

/** How long each side works at a time, in milliseconds. */
const SLICE_MS = 250;

interface Worker {
  readonly name: string;
  /** Does one piece of work. @returns how many were done, jobs or commits */
  act(): number | Promise<number>;
  end(): void | Promise<void>;
}

export async function commits(place: Place, count: number): Promise<readonly Line[]> {
  const raw = overwriting(place);
  const [one, hundred] = [library(place, 1), library(place, 100)];
  const { workers, missing } = await peers(place);
  const sides: readonly Worker[] = [raw, one, hundred, ...workers];
  const rates = sides.map((): number[] => []);
  for (let round = 0; round < count; round += 1)
    for (const at of shuffled(sides.map((_, index) => index))) rates[at]?.push(await rate(sides[at]));
  for (const side of sides) await side.end();
  const of = (at: number): readonly number[] => (rates[at] ?? []).map((value, round) => value / (rates[0]?.[round] ?? Number.NaN));
  const note = (at: number): string =>
    `${median(rates[at] ?? []).toFixed(0)} against ${median(rates[0] ?? []).toFixed(0)} a second, rounds ${quantile(of(at), 0.1).toFixed(2)}-${quantile(of(at), 0.9).toFixed(2)}`;
  return [
    { goal: 7, what: "library, a commit each: of 4 KiB and fdatasync", value: median(of(1)), unit: "x", atLeast: 0.5, note: note(1) },
    { goal: 7, what: "library, 100 a commit: of 4 KiB and fdatasync", value: median(of(2)), unit: "x", atLeast: 20, note: note(2) },
    ...workers.map(({ name }, at): Line => ({ goal: 7, what: name, value: median(rates[at + 3] ?? []), unit: "/s", note: note(at + 3) })),
    ...missing.map((what): Line => ({
      goal: 7,
      what,
      value: null,
      unit: "/s",
      note: "missing: `npm ci --prefix scripts/bench/peers` gets it",
    })),
  ];
}

async function rate(worker: Worker | undefined): Promise<number> {
  if (worker === undefined) return Number.NaN;
  const started = performance.now();
  let done = 0;
  while (performance.now() - started < SLICE_MS) done += await worker.act();
  return (done * 1_000) / (performance.now() - started);
}

function overwriting(place: Place): Worker {
  const block = new Uint8Array(4_096).fill(120);
  const fd = openSync(place.file("raw"), "w");
  for (let at = 0; at < 256; at += 1) writeSync(fd, block, 0, block.length, at * block.length);
  fdatasyncSync(fd);
  let turn = 0;
  return {
    name: "4 KiB and fdatasync",
    act: () => {
      writeSync(fd, block, 0, block.length, (turn++ % 256) * block.length);
      fdatasyncSync(fd);
      return 1;
    },
    end: () => closeSync(fd),
  };
}

function library(place: Place, each: number): Worker {
  const db = new Database(place.file(`library-${each}.db`), { create: true, strict: true });
  for (const pragma of ["journal_mode = WAL", "synchronous = FULL", "temp_store = MEMORY"]) db.run(`PRAGMA ${pragma}`);
  install(db);
  let made = 0;
  const enter = db.transaction(() => {
    for (let n = 0; n < each; n += 1) enqueue(db, { kind: "k", deliver_to: `d${made++ % 50}`, body: { n: made } });
  });
  return { name: "library", act: () => (enter.immediate(), each), end: () => db.close() };
}
