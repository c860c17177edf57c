/**
 * Waking: an idle runner learns of what another process enqueued, through whatever door, by watching the directory of the
 * database. The event comes before the commit can be seen, so each is followed by two looks; without them half of the
 * commits would be missed. What slips through all the same is found by the look that the runner takes each second.
 */
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** After an event, in milliseconds. */
const LOOKS_MS = [2, 25] as const;

export interface Watcher {
  /**
   * Sees to it that the right directory is watched and says whether the file is still the one that was there: it may have been
   * replaced, or its directory have gone and come back.
   */
  check(): "same" | "replaced";
  close(): void;
}

/** @param look called some milliseconds after something happened to the database; many events, one pair of looks */
export function watcher(path: string, look: () => void): Watcher {
  const directory = dirname(path);
  const name = basename(path);
  let watching: { readonly handle: FSWatcher; readonly inode: number } | null = null;
  let file: number | null = inodeOf(path);
  let pending: ReturnType<typeof setTimeout>[] = [];
  let again = false;

  const looks = (): void => {
    again = false;
    pending = LOOKS_MS.map((ms, index) =>
      setTimeout(() => {
        if (index === LOOKS_MS.length - 1) {
          pending = [];
          // What happened meanwhile may not have been visible to these looks.
          if (again) looks();
        }
        look();
      }, ms),
    );
  };
  const onEvent = (_: string, changed: string | null): void => {
    // SQLite's companions begin with the name of the file.
    if (changed !== null && !changed.startsWith(name)) return;
    if (pending.length === 0) looks();
    else again = true;
  };
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
      const handle = watch(directory, onEvent);
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
      const now = inodeOf(path);
      if (now === file) return "same";
      const first = file === null;
      file = now;
      return first ? "same" : "replaced";
    },
    close() {
      for (const timer of pending) clearTimeout(timer);
      pending = [];
      drop();
    },
  };
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
