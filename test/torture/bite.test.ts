/** What the torture is for: a program that answers too early, loses what it answered, or says nothing, is caught. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { enqueue, install } from "../../src/index.ts";
import { judge } from "./crashes.ts";
import type { Change } from "./disk.ts";
import { answered } from "./disks.ts";
import { lookAt } from "./images.ts";
import { notesOf } from "./laws.ts";
import { overlapping } from "./races.ts";
import { lineOf, part } from "./report.ts";
import { type Ended, Site } from "./site.ts";
import type { Recording } from "./workloads.ts";

let scratch = "";
beforeAll(() => void (scratch = mkdtempSync(join(tmpdir(), "outbox-bite-"))));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** An enqueue as the disk sees it: a database of nothing, then a log with the message. Its answer comes last. */
function recording(without: (change: Change) => boolean): Recording {
  const path = join(scratch, `${crypto.randomUUID()}.db`);
  const db = new Database(path, { create: true, strict: true });
  db.run("PRAGMA journal_mode = WAL");
  install(db);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const given = new Uint8Array(readFileSync(path));
  const { id } = enqueue(db, { kind: "ping", deliver_to: "seat-1" });
  const log = new Uint8Array(readFileSync(`${path}-wal`));
  db.close();
  const [database, wal] = ["/h/d/o.db", "/h/d/o.db-wal"];
  const frames = Array.from({ length: Math.ceil(log.length / 4_096) }, (_, at) => log.subarray(at * 4_096, (at + 1) * 4_096));
  const changes: readonly Change[] = [
    { kind: "make", path: wal },
    { kind: "sync names", path: "/h/d" },
    ...frames.map((bytes, at) => ({ kind: "write", path: wal, at: at * 4_096, bytes }) as const),
    { kind: "sync", path: wal },
  ];
  const done = changes.filter((change) => !without(change));
  const answers = [{ from: done.length, until: Infinity, id }];
  return { name: "enqueue", home: "/h", database, given: new Map([[database, given]]), changes: done, answers, share: 1, migrates: false };
}

const look = (recording: Recording): Promise<readonly string[]> =>
  lookAt({ recording, shift: 0, of: 1, images: 120, opened: 0, seed: 1, scratch }).then(({ violations }) => violations);

test("a program that syncs before it answers loses nothing to a power loss", async () => {
  expect(await look(recording(() => false))).toEqual([]);
});

test("a program that answers before it syncs is caught", async () => {
  expect((await look(recording(({ kind }) => kind === "sync"))).join("\n")).toMatch(/lost: [0-9a-f]{32} was answered/);
});

test("a program that does not sync the directory of a new file is caught", async () => {
  expect((await look(recording(({ kind }) => kind === "sync names"))).join("\n")).toMatch(/lost: [0-9a-f]{32} was answered/);
});

test("a program that leaves out a page of what it writes is caught", async () => {
  const second = (change: Change): boolean => change.kind === "write" && change.at === 4_096;
  expect(await look(recording(second))).not.toEqual([]);
});

test("a program that prints an id and is killed before it commits is caught", async () => {
  const site = Site.make(scratch);
  const id = "f".repeat(32);
  expect(await judge(site, { args: ["enqueue"] }, `${id}\n`)).toEqual([
    "after the kill: the database is gone, and 1 ids were answered",
    "at the end: the database is gone, and 1 ids were answered",
  ]);
});

const ended = (more: Partial<Ended>): Ended => ({
  code: 74,
  signal: null,
  stdout: "",
  stderr: "outbox: the disk is full; free some\n",
  hung: false,
  ...more,
});

test("an answer on a broken disk is a code, a sentence and a way out, and an id only with success", () => {
  const args = ["enqueue"];
  const id = `${"f".repeat(32)}\n`;
  expect(answered({ args }, ended({}))).toEqual([]);
  expect(answered({ args }, ended({ code: 0, stdout: id, stderr: "" }))).toEqual([]);
  for (const wrong of [
    { stdout: id },
    { code: 0, stderr: "" },
    { code: 70 },
    { code: 1 },
    { stderr: "" },
    { stderr: "outbox: the disk is full\n" },
    { stderr: "outbox: a; b\n    at write (main.js:1:2)\n" },
    { code: null, signal: "SIGXFSZ" },
    { code: null, signal: "SIGKILL", hung: true },
  ])
    expect({ wrong, caught: answered({ args }, ended(wrong)).length > 0 }).toEqual({ wrong, caught: true });
});

test("two commands of one dispatch at one time are caught, one after the other are not", () => {
  const id = "f".repeat(32);
  const notes = (text: string): string[] => overlapping(notesOf(text));
  expect(notes(`start ${id} 1 7\nend ${id} 1 7 1\nstart ${id} 2 8\nend ${id} 2 8 0\n`)).toEqual([]);
  expect(notes(`start ${id} 1 7\nstart ${id} 2 8\nend ${id} 1 7 1\nend ${id} 2 8 0\n`)).toEqual([`${id}: two commands at one time`]);
});

test("a part that cannot be done has failed", async () => {
  const result = await part("crash", () => Promise.reject(new Error("no strace")));
  expect(result.violations.join("\n")).toContain("no strace");
  expect(lineOf({ ...result, counts: { "kill points": 3 }, seconds: 2 })).toBe("crash: 3 kill points, 1 violations (2 s)");
});
