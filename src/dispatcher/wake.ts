/**
 * Waking: an idle runner learns of what another process enqueued, through whatever door, by watching the directory of the
 * database. The event comes before the commit can be seen, which takes as long as the disk needs, so several looks follow it;
 * without them half of the commits would be missed. What slips through all the same is found by the look of each second.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** From an event to the first look, and from each look to the next: 2, 5 and 10 ms after the event, then each 15 ms for as long as a slow disk takes. */
const GAPS_MS = [2, 3, 5, ...Array<number>(13).fill(15)];

export interface Watcher {
  /** The file was opened: the one that is there now is the one that counts. */
  opened(): void;
  /**
   * Sees to it that the right directory is watched, and says what has become of the file: it may have been replaced, or its
   * directory have gone and come back.
   */
  check(): "same" | "appeared" | "gone or replaced";
  close(): void;
}

/** @param look called some milliseconds after something happened to the database, however much happened */
export function watcher(path: string, look: () => void): Watcher {
  const directory = dirname(path);
  const name = basename(path);
  let watching: { readonly handle: FSWatcher; readonly inode: number } | null = null;
  let file = inodeOf(path);
  const looks = series(look);

  const drop = (): void => {
    watching?.handle.close();
    watching = null;
  };
  const start = (): void => {
    const inode = inodeOf(directory);
    if (watching !== null && watching.inode === inode) return;
    drop();
    if (inode === null) return;
    try {
      const handle = watch(directory, (_, changed) => {
        // SQLite's companions begin with the name of the file.
        if (changed === null || changed.startsWith(name)) looks.begin();
      });
      handle.on("error", drop);
      watching = { handle, inode };
    } catch {
      // No more watches to be had, or the directory went away meanwhile: the look each second has to do.
    }
  };
  start();
  return {
    opened() {
      start(); // its directory may be new
      file = inodeOf(path);
    },
    check() {
      start();
      const before = file;
      file = inodeOf(path);
      return file === before ? "same" : before === null ? "appeared" : "gone or replaced";
    },
    close() {
      looks.cancel();
      drop();
    },
  };
}

/** Looks after each of the gaps. Begun again, however often, it starts anew: never more than one look in the first gap. */
function series(look: () => void): { begin(): void; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let done = 0;
  const cancel = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    done = 0;
  };
  const next = (): void => {
    const gapMs = GAPS_MS[done];
    if (gapMs === undefined) return cancel();
    timer = setTimeout(() => {
      done += 1;
      next();
      look();
    }, gapMs);
  };
  return {
    begin() {
      if (timer !== null && done === 0) return;
      cancel();
      next();
    },
    cancel,
  };
}

function inodeOf(path: string): number | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
  } catch {
    return null; // out of reach: opening it says why
  }
}
