/**
 * Waking: an idle runner learns of what another process enqueued, through whatever door, by watching the directory of the
 * database. The event comes before the commit can be seen, so each is followed by two looks; without them half of the
 * commits would be missed. What slips through all the same is found by the look that the runner takes each second.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** After an event, in milliseconds. The second look finds what a slow commit showed too late for the first. */
const LOOKS_MS = [2, 25] as const;

export interface Watcher {
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
  const looks = LOOKS_MS.map((ms) => soon(ms, look));

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
        if (changed === null || changed.startsWith(name)) for (const each of looks) each.ask();
      });
      handle.on("error", drop);
      watching = { handle, inode };
    } catch {
      // No more watches to be had, or the directory went away meanwhile: the look each second has to do.
    }
  };
  start();
  return {
    check() {
      start();
      const before = file;
      file = inodeOf(path);
      return file === before ? "same" : before === null ? "appeared" : "gone or replaced";
    },
    close() {
      for (const each of looks) each.cancel();
      drop();
    },
  };
}

/** Looks `ms` after it was asked. Asked while a look is still to come, it looks again that long after that one: many asks, one look. */
function soon(ms: number, look: () => void): { ask(): void; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let again = false;
  const begin = (): void => {
    again = false;
    timer = setTimeout(() => {
      timer = null;
      if (again) begin();
      look();
    }, ms);
  };
  return {
    ask() {
      again = timer !== null;
      if (timer === null) begin();
    },
    cancel() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
