/** The transactions of a change of many: read what may match, go past what does not, change a batch, and again. */
import type { Clock } from "../core/seams.ts";
import { begin, type Change, type ChangeTerms, go, isDone, lastDueAt, type Progress, skip, type Tally } from "./changes.ts";
import type { Selection } from "./selection.ts";
import type { Handle } from "./statement.ts";

/** Of a retry, `gapS` are the seconds between two due times; `expiresInS` counts from its start, null keeps the old expiries. */
export interface ManyTerms {
  readonly selection: Selection;
  readonly change:
    Exclude<Change, { verb: "retry" }> | { readonly verb: "retry"; readonly gapS: number; readonly expiresInS: number | null };
  readonly actor: string;
  readonly dryRun: boolean;
}

/** How far it has come. */
export interface Step extends Tally {
  readonly done: boolean;
  /** When the last of those that were put back is due, epoch seconds; null: none was. */
  readonly lastDueAt: number | null;
}

export interface Many {
  /** One batch. One that failed changed nothing, and may be asked for again. */
  next(): Promise<Step>;
}

interface Seams {
  readonly clock: Clock;
  readonly read: <T>(body: () => T) => Promise<T>;
  readonly transact: <T>(body: () => T) => Promise<T>;
}

/** A batch keeps others from writing for some 50 ms, its commit included. */
const BATCH_MS = 30;

export function many(db: Handle, { change, ...rest }: ManyTerms, { clock, read, transact }: Seams): Many {
  let terms: ChangeTerms | null = null;
  let progress: Progress | null = null;
  const moment = (): { now: number; isLate: () => boolean } => {
    const began = clock.monotonicMs();
    return { now: clock.now(), isLate: () => clock.monotonicMs() - began >= BATCH_MS };
  };
  return {
    async next() {
      const own = (terms ??= { ...rest, change: fixed(change, clock.now()) });
      let now = progress ?? (await read(() => begin(db, own, clock.now())));
      if (own.dryRun) now = await read(() => go(db, own, now, moment()));
      else {
        const { progress: after, found } = await read(() => skip(db, own, now, moment()));
        now = found ? await transact(() => go(db, own, after, moment())) : after;
      }
      progress = now;
      return { changed: now.changed, refused: now.refused, done: isDone(now), lastDueAt: lastDueAt(own.change, now) };
    },
  };
}

function fixed(change: ManyTerms["change"], now: number): Change {
  if (change.verb !== "retry") return change;
  const { gapS, expiresInS } = change;
  return { verb: "retry", dueAt: null, gapS, expiresAt: expiresInS === null ? null : now + expiresInS };
}
