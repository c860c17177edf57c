/** The caches of the claim and the counters, kept by the triggers in a library older than ours. `scripts/system.ts` runs this; it needs python3. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { figures } from "../../src/store/figures.ts";
import { breaches } from "../../src/store/invariants.ts";
import { openDatabase } from "../../src/store/open.ts";
import { terms } from "../fixtures/store/terms.ts";
import { scratch } from "../fixtures/world.ts";

test("Python's older SQLite enters keyed rows, holds, claims and deletes, and every cache and counter holds", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const db = await openDatabase(terms(path));
  const python = Bun.spawnSync(["python3", join(import.meta.dir, "../fixtures/system/older_turns.py"), path]);
  expect([python.stdout.toString(), python.stderr.toString()]).toEqual(["True\nok\n", ""]);
  expect(breaches(db, 99)).toEqual([]);
  expect(breaches(db, 101)).toEqual([]);
  expect(db.query("SELECT count(*) AS n FROM dispatch_outbox WHERE ready = 0 AND status IN ('pending', 'delivering')").get()).not.toEqual({
    n: 0,
  });
  expect(figures(db, 99)).toMatchObject({
    dead_letters: { max_attempts: 1 },
    dead_letters_total: [{ reason: "max_attempts", count: 2 }],
    lag: { count: expect.any(Number) as number },
  });
  expect(figures(db, 99).lag.count).toBeGreaterThan(0);
  db.close();
});
