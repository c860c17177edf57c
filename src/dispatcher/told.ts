/**
 * What needs a person is told when it begins, at most hourly while it lasts, and when it ends: over all runners, because under
 * cron no process lives long enough to remember. The memory is a table of the first source that answers.
 */
import type { Store } from "../store/store.ts";
import type { Event, Tell } from "./report.ts";

export interface Told {
  /** It is so. Say it as often as it shows: the memory knows when it was told. */
  begin(topic: string, event: Event, text: string): void;
  /** It is no longer so. Told if anybody told that it began. */
  end(topic: string, event: Event): void;
  /** Of these standing topics none is so any more unless `begin` said it: how a runner ends what another one told. */
  settle(prefix: string, event: (topic: string) => Event): void;
  /**
   * Tells what is to be told.
   * @param memories the sources that answer. The first one remembers, all are asked whether they do. None: what begins is told as
   * it comes, and what ends waits.
   */
  flush(memories: readonly Memory[]): Promise<void>;
}

/** A source, as far as it remembers. */
export interface Memory {
  quietly<T>(work: (store: Store) => Promise<T>): Promise<T | null>;
}

interface Standing {
  readonly event: Event;
  readonly text: string;
  /** Before this the memory is not asked again, on the monotonic clock. */
  readonly askAtMs: number;
  /** When this runner told it and had no memory to note it in. */
  readonly aloneAtMs: number | null;
}

interface Ended {
  readonly event: Event;
  readonly aloneAtMs: number | null;
}

/** As the memory has it. */
const AGAIN_MS = 3_600_000;
/** How often the memory is asked while a thing lasts. */
const ASK_AGAIN_MS = 60_000;

export function told(monotonicMs: () => number, tell: Tell): Told {
  const standing = new Map<string, Standing>();
  const shown = new Set<string>();
  const ended = new Map<string, Ended>();
  const prefixes = new Map<string, (topic: string) => Event>();

  const ask = async (topic: string, { event, text, aloneAtMs }: Standing, memory: Memory | undefined): Promise<void> => {
    const nowMs = monotonicMs();
    const answer = (await memory?.quietly((store) => store.note(topic, text))) ?? null;
    const toldAlone = aloneAtMs !== null && nowMs - aloneAtMs < AGAIN_MS;
    const tells = answer !== "quiet" && !toldAlone;
    if (tells) tell(event);
    const alone = answer !== null ? null : tells ? nowMs : aloneAtMs;
    standing.set(topic, { event, text, askAtMs: nowMs + ASK_AGAIN_MS, aloneAtMs: alone });
  };
  const forget = async (topic: string, { event, aloneAtMs }: Ended, memories: readonly Memory[]): Promise<void> => {
    // Looked up before it is removed: nobody waits for a lock where nothing stands.
    const known = await Promise.all(
      memories.map((memory) => memory.quietly(async (store) => (await store.standing(topic)).includes(topic) && store.over(topic))),
    );
    if (aloneAtMs !== null || known.includes(true)) tell(event);
  };
  return {
    begin(topic, event, text) {
      const before = standing.get(topic);
      const aloneAtMs = before?.text === text ? before.aloneAtMs : (ended.get(topic)?.aloneAtMs ?? null);
      ended.delete(topic);
      shown.add(topic);
      if (before?.text !== text) standing.set(topic, { event, text, askAtMs: 0, aloneAtMs });
    },
    end(topic, event) {
      const aloneAtMs = (standing.get(topic) ?? ended.get(topic))?.aloneAtMs ?? null;
      standing.delete(topic);
      shown.delete(topic);
      ended.set(topic, { event, aloneAtMs });
    },
    settle: (prefix, event) => void prefixes.set(prefix, event),
    async flush(memories) {
      const [first] = memories;
      for (const topic of shown) {
        shown.delete(topic);
        const entry = standing.get(topic);
        if (entry !== undefined && monotonicMs() >= entry.askAtMs) await ask(topic, entry, first);
      }
      if (first === undefined) return;
      for (const [prefix, eventOf] of prefixes) {
        prefixes.delete(prefix);
        for (const memory of memories)
          for (const topic of (await memory.quietly((store) => store.standing(prefix))) ?? [])
            if (!standing.has(topic)) ended.set(topic, { event: eventOf(topic), aloneAtMs: null });
      }
      for (const [topic, end] of ended) {
        ended.delete(topic);
        await forget(topic, end, memories);
      }
    },
  };
}
