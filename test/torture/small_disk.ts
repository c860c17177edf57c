/** A small disk in memory under the database of a site, that can be filled, emptied and made read-only. */
import { closeSync, copyFileSync, mkdirSync, openSync, readdirSync, rmSync, statfsSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Site } from "./site.ts";

export interface SmallDisk {
  /** Leaves exactly so many pages free. */
  fillUpTo(pages: number): void;
  empty(): void;
  readOnly(yes: boolean): void;
  [Symbol.dispose](): void;
}

/** Puts what is in the directory of the database onto a disk of 1 MiB that is mounted there. */
export function smallDisk(site: Site): SmallDisk {
  const place = dirname(site.database);
  const aside = `${place}-aside`;
  mkdirSync(place, { recursive: true, mode: 0o700 });
  mkdirSync(aside);
  const copy = (from: string, to: string): void => {
    for (const name of readdirSync(from)) copyFileSync(join(from, name), join(to, name));
  };
  copy(place, aside);
  mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", place);
  copy(aside, place);
  rmSync(aside, { recursive: true });
  const ballast = join(place, "ballast");
  return {
    fillUpTo(pages) {
      const { bavail, bsize } = statfsSync(place);
      const fd = openSync(ballast, "w");
      writeSync(fd, new Uint8Array(Math.max(0, bavail - pages) * bsize));
      closeSync(fd);
    },
    empty: () => rmSync(ballast, { force: true }),
    readOnly: (yes) => mount("-o", `remount,${yes ? "ro" : "rw"}`, place),
    [Symbol.dispose]: () => void Bun.spawnSync(["umount", "-l", place]),
  };
}

/** While others mount too, `mount` may overlook one that is there, so it is asked again. */
function mount(...options: readonly string[]): void {
  for (let left = 5; ; left -= 1) {
    const { exitCode, stderr } = Bun.spawnSync(["mount", ...options]);
    if (exitCode === 0) return;
    if (left === 0) throw new Error(`mount ${options.join(" ")}: ${stderr.toString().trim()}`);
  }
}
