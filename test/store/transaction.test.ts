import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { atOneMoment, immediately } from "../../src/store/transaction.ts";
import { scratch } from "../fixtures/world.ts";

/** Two handles of one database with a table of numbers. */
function pair(path: string): readonly [Database, Database] {
  const [one, other] = [new Database(path, { create: true, strict: true }), new Database(path, { create: true, strict: true })];
  one.run("PRAGMA journal_mode = WAL; CREATE TABLE number (n INTEGER NOT NULL)");
  return [one, other];
}

const numbers = (db: Database): number[] =>
  db
    .query<{ n: number }, []>("SELECT n FROM number ORDER BY n")
    .all()
    .map(({ n }) => n);
const add = (db: Database, n: number): void => void db.run("INSERT INTO number VALUES (?)", [n]);

test("at one moment nothing is seen of what another commits meanwhile, and afterwards all of it", () => {
  using dir = scratch();
  const [reader, writer] = pair(dir.file("a.db"));
  add(writer, 1);
  const seen = atOneMoment(reader, () => {
    const before = numbers(reader);
    add(writer, 2);
    return [before, numbers(reader)];
  });
  expect(seen).toEqual([[1], [1]]);
  expect(numbers(reader)).toEqual([1, 2]);
});

test("immediately others cannot write from its first moment on", () => {
  using dir = scratch();
  const [one, other] = pair(dir.file("a.db"));
  immediately(one, () => expect(() => add(other, 1)).toThrow("database is locked"));
  add(other, 2);
  expect(numbers(one)).toEqual([2]);
});

test.each([
  ["immediately", immediately],
  ["at one moment", atOneMoment],
])("%s: what a body did that throws is taken back, its error passes, and the handle is free", (_, within) => {
  using dir = scratch();
  const [one, other] = pair(dir.file("a.db"));
  const error = new Error("no");
  const run = (): void =>
    within(one, () => {
      add(one, 1);
      throw error;
    });
  expect(run).toThrow(error);
  expect(one.inTransaction).toBe(false);
  add(other, 2);
  expect(numbers(one)).toEqual([2]);
});
