/** What strace wrote is read whole, in the order in which it counts, or not at all. */
import { expect, test } from "bun:test";
import { eventsOf } from "./recording.ts";
import { killedBefore, pointsOf } from "./strace.ts";

const WHERE = { home: "/h", database: "/h/d/o.db", log: "/h/log" };
const hex = (text: string): string => [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
const on = (fd: number, path: string): string => `${fd}<${hex(path)}>`;
const read = (...lines: readonly string[]): unknown[] =>
  eventsOf(lines.join("\n"), WHERE).map((event) => ("bytes" in event ? { ...event, bytes: Buffer.from(event.bytes).toString() } : event));

test("changes of the database and what is answered are read; what else is done is not", () => {
  expect(
    read(
      `7 openat(AT_FDCWD<${hex("/h")}>, "${hex("/h/d/o.db")}", O_RDWR|O_CREAT, 0600) = ${on(5, "/h/d/o.db")}`,
      `7 openat(AT_FDCWD<${hex("/h")}>, "${hex("/h/d/o.db")}", O_RDWR) = ${on(5, "/h/d/o.db")}`,
      `7 pwrite64(${on(5, "/h/d/o.db")}, "${hex("page")}", 4, 4096) = 4`,
      `7 pwrite64(${on(6, "/h/d/o.db-shm")}, "${hex("x")}", 1, 0) = 1`,
      `7 fsync(${on(5, "/h/d/o.db")}) = 0`,
      `7 fsync(${on(8, "/h/d")}) = 0`,
      `7 fsync(${on(8, "/other")}) = 0`,
      `7 unlink("${hex("/h/d/o.db-wal")}") = 0`,
      `7 unlink("${hex("/h/d/o.db-wal")}") = -1 ENOENT (No such file or directory)`,
      `7 write(${on(1, "pipe:[9]")}, "${hex("id\n")}", 3) = 3`,
      `8 write(${on(3, "/h/log")}, "${hex("start\n")}", 6) = 6`,
    ),
  ).toEqual([
    { kind: "make", path: "/h/d/o.db" },
    { kind: "write", path: "/h/d/o.db", at: 4_096, bytes: "page" },
    { kind: "sync", path: "/h/d/o.db" },
    { kind: "sync names", path: "/h/d" },
    { kind: "remove", path: "/h/d/o.db-wal" },
    { kind: "printed", text: "id\n" },
    { kind: "noted", text: "start\n" },
  ]);
});

test("of what happens at one time an answer counts from its begin, and a sync from its end", () => {
  expect(
    read(
      `7 fsync(${on(5, "/h/d/o.db")} <unfinished ...>`,
      `8 write(${on(1, "pipe:[9]")}, "${hex("id\n")}", 3 <unfinished ...>`,
      `9 unlink("${hex("/h/d/o.db-wal")}") = 0`,
      "8 <... write resumed>) = 3",
      "7 <... fsync resumed>) = 0",
    ).map((event) => (event as { kind: string }).kind),
  ).toEqual(["printed", "remove", "sync"]);
});

test("a call that is not understood is an error, not a gap", () => {
  expect(() => read(`7 fallocate(${on(5, "/h/d/o.db")}, 0, 0, 4096) = 0`)).toThrow("not understood: fallocate");
  expect(() => read(`7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, ${on(5, "/h/d/o.db")}, 0) = 0x7f0000000000`)).toThrow("mapped");
});

test("the points of a run are its calls by name and number, without those that only read", () => {
  const log =
    'openat(AT_FDCWD, "/a", O_RDONLY) = 3\npwrite64(3</a>, "", 0, 0) = 0\nopenat(AT_FDCWD, "/b", O_RDWR|O_CREAT, 0600) = 4\n+++ exited +++';
  expect(pointsOf(log)).toEqual([
    { call: "pwrite64", nth: 1 },
    { call: "openat", nth: 2 },
  ]);
  expect(killedBefore({ call: "openat", nth: 2 })).toContain("inject=openat:signal=KILL:when=2");
});
