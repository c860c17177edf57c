/** What the dispatcher knows of a transport: a message goes in, an outcome comes out. */
import type { Outcome } from "../core/outcome.ts";

/** One command to run. Every value is final: the template is already expanded. */
export interface Job {
  /** Element 0 is the program: a path, or a name to look up in the PATH of `env`. */
  readonly argv: readonly string[];
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string>>;
  /** Bytes for its stdin; empty for none. */
  readonly stdin: Uint8Array;
  readonly cwd: string;
  /** From start to SIGTERM, in milliseconds of the monotonic clock. */
  readonly timeoutMs: number;
  /** Bytes of output that are kept, head and tail together. */
  readonly outputLimit: number;
  /** Exit codes after which trying again is pointless. */
  readonly permanentExitCodes: readonly number[];
}

export interface Transport {
  /**
   * Runs one command to its end. Never rejects: whatever happens is an outcome.
   * @param kill when it aborts, the group is ended (SIGTERM, 2 s later SIGKILL) and the outcome is a failed attempt: it did start.
   * @param now when it aborts, a group that is being ended waits for nothing: SIGKILL. By itself it ends none.
   */
  run(job: Job, kill: AbortSignal, now: AbortSignal): Promise<Outcome>;
  /** Why the program of this argv cannot be started (no such command, not executable), or null when it can. */
  fault(argv0: string, env: Readonly<Record<string, string>>): string | null;
}
