import { expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "../../src/store/open.ts";
import { history, list } from "../../src/store/queries.ts";
import { terms } from "../fixtures/store/terms.ts";
import { enter, scratch } from "../fixtures/world.ts";

test("Python's older SQLite opens, inserts into and updates an outbox file, and is held to the lifecycle", async () => {
  using dir = scratch();
  const path = dir.file("a.db");
  const db = await openDatabase(terms(path));
  enter(db);
  const python = Bun.spawnSync(["python3", join(import.meta.dir, "../fixtures/system/older_sqlite.py"), path]);
  expect(python.stderr.toString()).toBe("");
  expect(python.stdout.toString().trim().split("\n")).toEqual([
    "dispatch: this move is not in the lifecycle",
    "dispatch: seq is written once",
    "dispatch: this id is taken",
    "ok",
  ]);
  const rows = list(db, { selection: {}, limit: 0, oldestFirst: true, after: null });
  expect(rows.map((row) => [row.seq, row.status])).toEqual([
    [1, "pending"],
    [2, "acked"],
  ]);
  expect(history(db, "a".repeat(32)).map((move) => move.status)).toEqual(["pending", "acked"]);
  db.close();
});
