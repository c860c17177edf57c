/** `outbox migrate` and an enqueue that brings a database forward, killed at any moment: the file is whole, before or after. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { BINARY } from "../cli/outbox.ts";
import { Workstation } from "../cli/running.ts";
import { hostClock } from "../../src/host.ts";
import { breaches } from "../../src/store/invariants.ts";
import { ownership } from "../../src/store/ownership.ts";
import { SCHEMA_VERSION } from "../../src/store/version.ts";
import { STAGES, writeDatabase } from "../fixtures/store/stages.ts";

setDefaultTimeout(60_000);

/** So many that bringing them forward takes a while. */
const TIMES = 80;
const ROUNDS = 8;
const ROWS = TIMES * STAGES.length;

/** What the database is after a kill. @param more how many rows may have been added @returns its schema */
function inspect(path: string, now: number, more = 0): number {
  using db = new Database(path, { readwrite: true, create: false });
  const owner = ownership(db);
  if (owner.whose !== "ours") throw new Error(`it is ${owner.whose}`);
  expect(db.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  const rows = db.query<{ n: number }, []>("SELECT count(*) AS n FROM dispatch_outbox").get()?.n ?? 0;
  expect(rows - ROWS).toBeOneOf([0, more]);
  if (owner.version === SCHEMA_VERSION) expect(breaches(db, now)).toEqual([]);
  return owner.version;
}

test.concurrent.each([
  ["migrate", ["migrate"], 0],
  ["enqueue", ["enqueue", "--kind", "k", "--to", "d", "--dedup-key", "after"], 1],
] as const)("%s that is killed at any moment leaves a whole database, and whoever comes next finishes it", async (_, args, adds) => {
  using place = new Workstation();
  const now = hostClock.now();
  const directory = dirname(place.database);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeDatabase(place.file("old.db"), now, 1, TIMES);
  const fresh = (): void => {
    rmSync(directory, { recursive: true });
    mkdirSync(directory, { mode: 0o700 });
    copyFileSync(place.file("old.db"), place.database);
  };
  const start = (): Bun.Subprocess =>
    Bun.spawn([BINARY, ...args], { cwd: place.home, env: place.env(), stdio: ["ignore", "ignore", "ignore"] });
  fresh();
  const began = hostClock.monotonicMs();
  expect(await start().exited).toBe(0);
  const wholeMs = hostClock.monotonicMs() - began;
  const found = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    fresh();
    const child = start();
    await hostClock.sleep((wholeMs * (round + 0.5)) / ROUNDS); // any moment will do
    child.kill("SIGKILL");
    await child.exited;
    const copies = readdirSync(directory).filter((name) => name.endsWith(".backup"));
    // A copy that has the name is whole.
    for (const name of copies) expect(inspect(`${directory}/${name}`, now)).toBe(1);
    const version = inspect(place.database, now, adds);
    expect(version).toBeOneOf([1, SCHEMA_VERSION]);
    if (version !== 1) expect(copies).toEqual(["outbox.db.schema-1.backup"]);
    found.add(version);
    // And whoever comes next finishes it.
    expect((await place.start(args)).code).toBe(0);
    expect(inspect(place.database, now, adds)).toBe(SCHEMA_VERSION);
    expect(place.rows()).toHaveLength(ROWS + adds);
    expect(readdirSync(directory).filter((name) => name.endsWith(".partial"))).toEqual([]);
  }
  expect(found.has(1)).toBeTrue();
});
