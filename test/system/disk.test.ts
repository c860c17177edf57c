/** A disk that is full. `scripts/system.ts` runs this; mounting a small one needs root. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Place } from "../cli/outbox.ts";

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

/** Mounts a disk of this size for the time of the test. */
function disk(at: string, options: string): Disposable {
  mkdirSync(at);
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", at]).exitCode).toBe(0);
  return { [Symbol.dispose]: () => void Bun.spawnSync(["umount", "-l", at]) };
}

test.each([
  ["no room for the shared memory of its handles", "size=32k"],
  ["no block left", "size=64k"],
  ["no room for another file", "size=1m,nr_inodes=3"],
])("a full disk is told as one: %s", async (_, options) => {
  using place = new Place();
  const at = join(place.home, "disk");
  using _disk = disk(at, options);
  const full = {
    code: 74,
    stderr: /^outbox: (cannot make )?database \S+: (the disk is full|no space left on the device).*; free some space\n$/,
  };
  const start = (): Promise<unknown> => place.run(["--db", join(at, "o.db"), ...ENQUEUE], full);
  await start();
  try {
    writeFileSync(join(at, "more"), new Uint8Array(100_000));
  } catch {
    // Now it is full to the last block.
  }
  if (!options.includes("inodes")) await start();
});
