/**
 * What needs a person is told when it begins, at most hourly while it lasts, and when it ends: over all runners, because under
 * cron no process lives long enough to remember. The memory is a table of the first source that answers.
 */
import type { Store } from "../store/store.ts";
import type { Event, Tell } from "./report.ts";

export interface Told {
  /** It is so, at least since now. Told when the memory is asked. */
  begin(topic: string, event: Event, text: string): void;
  /** It is no longer so. Told if it was told that it began. */
  end(topic: string, event: Event): void;
  /** Of these standing topics none is so any more unless `begin` said it: how a runner ends what another one told. */
  settle(prefix: string, event: (topic: string) => Event | null): void;
  /**
   * Tells what is to be told.
   * @param memories the sources that answer. The first one remembers, all are asked whether they do. None: what begins is told as
   * it comes.
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
  /** When the memory is asked next, on the monotonic clock. */
  readonly askAtMs: number;
}

/** The memory holds a topic for an hour; a runner that goes on asks again that often. */
const AGAIN_MS = 3_600_000;

export function told(monotonicMs: () => number, tell: Tell): Told {
  const standing = new Map<string, Standing>();
  const ended = new Map<string, Event>();
  const prefixes = new Map<string, (topic: string) => Event | null>();
  return {
    begin(topic, event, text) {
      ended.delete(topic);
      const before = standing.get(topic);
      if (before?.text === text) return;
      standing.set(topic, { event, text, askAtMs: 0 });
    },
    end(topic, event) {
      standing.delete(topic);
      ended.set(topic, event);
    },
    settle: (prefix, event) => void prefixes.set(prefix, event),
    async flush(memories) {
      const [first] = memories;
      for (const [topic, { event, text, askAtMs }] of standing) {
        if (monotonicMs() < askAtMs) continue;
        standing.set(topic, { event, text, askAtMs: monotonicMs() + AGAIN_MS });
        if ((await first?.quietly((store) => store.note(topic, text))) !== "quiet") tell(event);
      }
      if (first === undefined) return;
      for (const [prefix, eventOf] of prefixes) {
        prefixes.delete(prefix);
        for (const memory of memories)
          for (const topic of (await memory.quietly((store) => store.standing(prefix))) ?? []) {
            const event = standing.has(topic) ? null : eventOf(topic);
            if (event !== null) ended.set(topic, event);
          }
      }
      for (const [topic, event] of ended) {
        ended.delete(topic);
        const known = await Promise.all(memories.map((memory) => memory.quietly((store) => store.over(topic))));
        if (known.includes(true)) tell(event);
      }
    },
  };
}
