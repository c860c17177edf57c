/** The world as a command sees it: environment, streams, terminal, clock. Tests pass their own; `main.ts` passes the real one. */
import type { Clock, Entropy, Zone } from "../core/seams.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where relative paths of the command line start. Absolute. */
  readonly cwd: string;
  /** Who runs this process. */
  readonly uid: number;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly zone: Zone;
  /**
   * Writes text to stdout, all of it.
   * @throws StdoutClosed when nobody reads any more
   * @throws OutboxError `io` when it cannot be written (disk full)
   */
  out(text: string): void;
  /** Writes one line to stderr. Never fails: there is no place left to complain to. */
  err(line: string): void;
  /** Stdin as it arrives. Read only when a flag says so. */
  stdin(): AsyncIterable<Uint8Array>;
  /** What is known of the terminals. Found on first use, because asking costs milliseconds. */
  terminal(): Terminal;
  /**
   * Installs handlers for SIGINT and SIGTERM. Before the first call a signal ends the program at once; afterwards the
   * first one aborts `stop` and the second one `now`, both with the signal's name as their reason.
   */
  interrupts(): Interrupts;
}

export interface Terminal {
  readonly stdout: boolean;
  readonly stderr: boolean;
  /** Width of stdout in columns; null off a terminal: nothing is cut there. */
  readonly columns: number | null;
  /** Whether stdout takes colour: a terminal, without NO_COLOR and TERM=dumb. */
  readonly color: boolean;
}

export interface Interrupts {
  readonly stop: AbortSignal;
  readonly now: AbortSignal;
  /** Calls this at every SIGHUP, which then no longer ends the program. */
  readonly onHangup: (listener: () => void) => void;
  /** Calls this at every SIGINT, SIGTERM and SIGHUP. */
  readonly onSignal: (listener: (signal: "SIGINT" | "SIGTERM" | "SIGHUP") => void) => void;
}

/** The reader of stdout went away. Lists end quietly; a command whose answer it was does not. */
export class StdoutClosed extends Error {
  override readonly name = "StdoutClosed";
}
