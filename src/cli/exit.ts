/** What each exit code means. Help, README and the tests read this table; nothing else invents a code. */
import type { Trouble } from "../core/errors.ts";

interface Meaning {
  readonly code: number;
  /** One sentence for help and README, without a full stop. */
  readonly sentence: string;
}

export const OK = 0;

/** The exit code of every kind of trouble. Total: a new kind does not compile without its code. */
export const TROUBLE = {
  no: { code: 1, sentence: "the answer is no: not found, no database, refused, mismatch" },
  usage: { code: 2, sentence: "usage: a flag, number, duration or time that cannot be read" },
  data: { code: 65, sentence: "bad data: body, batch line, key, kind, destination or path" },
  bug: { code: 70, sentence: "a bug in outbox" },
  io: { code: 74, sentence: "input or output failed: disk full, corrupt, not an outbox file" },
  busy: { code: 75, sentence: "busy; this code alone is worth an automatic retry" },
  permission: { code: 77, sentence: "owner, mode or permission" },
  settings: { code: 78, sentence: "wrong settings, or a database newer than this outbox" },
} as const satisfies Record<Trouble, Meaning>;

/** Exit codes of a `run` that a second signal cut short: 128 and the number of the signal. */
export const INTERRUPTED = { SIGINT: 130, SIGTERM: 143 } as const;

/** The closed set, in ascending order. */
export const EXIT_CODES: readonly Meaning[] = [
  { code: OK, sentence: "done" },
  ...Object.values(TROUBLE),
  { code: INTERRUPTED.SIGINT, sentence: "interrupted by SIGINT" },
  { code: INTERRUPTED.SIGTERM, sentence: "ended by SIGTERM" },
];

/** @example exitCode("busy") === 75 */
export function exitCode(trouble: Trouble): number {
  return TROUBLE[trouble].code;
}
