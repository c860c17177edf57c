/** A disk that is full. `scripts/system.ts` runs this; mounting a small one needs root. */
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ID, Place } from "../cli/outbox.ts";

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

test.each([
  ["no room for the shared memory of its handles", "size=32k"],
  ["no block left", "size=64k"],
  ["no room for another file", "size=1m,nr_inodes=3"],
])("a full disk is told as one: %s", async (_, options) => {
  using place = new Place();
  const disk = join(place.home, "disk");
  mkdirSync(disk);
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk]).exitCode).toBe(0);
  try {
    const stderr = /^outbox: (cannot make )?database \S+: (the disk is full|no space left on the device).*; free some space\n$/;
    await place.run(["--db", join(disk, "o.db"), ...ENQUEUE], { code: 74, stderr });
  } finally {
    Bun.spawnSync(["umount", "-l", disk]);
  }
});

test("a file system that is read-only is told as one, where a database is and where it would be made", async () => {
  using place = new Place();
  const disk = join(place.home, "disk");
  const path = join(disk, "o.db");
  mkdirSync(disk);
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "tmpfs", disk]).exitCode).toBe(0);
  try {
    await place.run(["--db", path, ...ENQUEUE], { stdout: ID });
    expect(Bun.spawnSync(["mount", "-o", "remount,ro", disk]).exitCode).toBe(0);
    const told = /^outbox: database \S+: its file system is read-only; mount it for writing\n$/m;
    for (const args of [ENQUEUE, ["run", "--once"], ["ls"]]) await place.run(["--db", path, ...args], { code: 74, stderr: told });
    const stderr = /^outbox: cannot make database \S+: the file system is read-only; mount it for writing, .*\n$/;
    await place.run(["--db", join(disk, "new.db"), ...ENQUEUE], { code: 74, stderr });
  } finally {
    Bun.spawnSync(["umount", "-l", disk]);
  }
});
