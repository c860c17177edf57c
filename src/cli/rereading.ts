/** The settings of a runner, read again when somebody asks or the file changed. A wrong new one is told once; the old one stays. */
import { statSync } from "node:fs";
import { OutboxError } from "../core/errors.ts";
import type { Loaded } from "../settings/settings.ts";

export interface Rereading {
  /** What holds now. A change of the file is noticed here, and what it says holds as soon as it is read. */
  current(): Loaded;
  /** Reads the file, whether it changed or not. */
  again(): void;
  /** Calls this with what was read anew, before it holds; if it throws, the settings from before stay. */
  onChange(listener: (fresh: Loaded) => void): void;
}

export interface RereadingSeams {
  readonly load: () => Promise<Loaded>;
  /** Where a file may appear or be replaced, besides the one that was read: the name before its links are followed. */
  readonly candidate: string;
  readonly complain: (text: string) => void;
}

/** Which file comes first. What is looked for after a file takes its place only when a runner starts. */
const RANK: Readonly<Record<Loaded["origin"], number>> = { "--config": 0, OUTBOX_CONFIG: 0, user: 1, system: 2, "built-in": 3 };

export function rereading(first: Loaded, { load, candidate, complain }: RereadingSeams): Rereading {
  let loaded = first;
  let seen = signatures(candidate, loaded.file);
  let reading = false;
  let askedMeanwhile = false;
  /** What was told of the file as it is now. */
  let told = "";
  let changed = (_fresh: Loaded): void => {};

  const read = async (): Promise<void> => {
    // Looked at before it is read: a change in between is seen at the next look.
    seen = signatures(candidate, loaded.file);
    try {
      const fresh = await load();
      if (loaded.file !== null && RANK[fresh.origin] > RANK[loaded.origin])
        throw new OutboxError("settings", `the settings file ${loaded.file} is gone`, "put it back, or start run again to go without it");
      changed(fresh);
      if (fresh.file !== loaded.file) seen = signatures(candidate, fresh.file);
      loaded = fresh;
      told = "";
    } catch (error) {
      const text = error instanceof OutboxError ? [error.message, error.hint].filter(Boolean).join("; ") : String(error);
      if (text !== told) complain(`${text}; the settings from before stay in force`);
      told = text;
    }
  };
  const again = (): void => {
    askedMeanwhile = reading;
    if (reading) return;
    reading = true;
    void read().finally(() => {
      reading = false;
      if (askedMeanwhile) again();
    });
  };
  return {
    again,
    current() {
      if (!reading && signatures(candidate, loaded.file) !== seen) again();
      return loaded;
    },
    onChange(listener) {
      changed = listener;
    },
  };
}

function signatures(candidate: string, file: string | null): string {
  return file === null || file === candidate ? signature(candidate) : `${signature(candidate)} ${signature(file)}`;
}

/** Changes when the file is made, edited, replaced or removed. */
function signature(file: string): string {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? "missing" : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
  } catch {
    return "out of reach";
  }
}
