/** What the end of a command means for its dispatch: exit code, signal and what it printed become an outcome. Pure. */
import { formatDuration, parseDuration } from "../core/duration.ts";
import { cutError } from "../core/lifecycle.ts";
import type { Outcome, Report } from "../core/outcome.ts";
import type { Captured } from "./capture.ts";

/** How a command that started came to its end. */
export interface Ending extends Captured {
  /** Exit code; null when it died by a signal. */
  readonly exit: number | null;
  /** Signal name; null when it exited. */
  readonly signal: string | null;
  /** Why we ended it; null when it ended by itself. The first cause counts, whatever it then made of the signal. */
  readonly stopped: Stopped | null;
  readonly durationMs: number;
}

export type Stopped = "timeout" | "kill";

/** What was agreed about it beforehand. */
export interface Terms {
  readonly timeoutMs: number;
  readonly permanentExitCodes: readonly number[];
}

/** The outcome of a command that started. The error is its stderr, or says how it ended. */
export function verdict(ending: Ending, terms: Terms): Outcome {
  const { exit, signal, durationMs, head, tail, stderr } = ending;
  const report: Report = { exit, signal, durationMs, head, tail };
  const failed = (error: string): Outcome => ({
    kind: "failed",
    report,
    error: cutError(error),
    retryAfterMs: retryAfterMs(ending.lastLine),
  });
  // Not its stderr, which may be no more than a shell's word on the signal that we sent; the report keeps what it printed.
  switch (ending.stopped) {
    case "timeout":
      return failed(`timed out after ${formatDuration(terms.timeoutMs)}`);
    case "kill":
      return failed("stopped by the runner before it finished");
    case null:
      break;
    default:
      return ending.stopped satisfies never;
  }
  if (signal !== null) return failed(stderr || `signal ${signal}`);
  if (exit === 0) return { kind: "ok", report };
  if (exit !== null && terms.permanentExitCodes.includes(exit))
    return { kind: "rejected", report, error: cutError(stderr || `exit ${exit}`) };
  return failed(stderr || `exit ${exit ?? "unknown"}`);
}

/** The wait that a failed command asks for with `retry-after: 90s` as its last line; null when it asks for none. */
function retryAfterMs(lastLine: string): number | null {
  const wanted = /^retry-after:(.+)$/i.exec(lastLine)?.[1];
  if (wanted === undefined) return null;
  try {
    return parseDuration(wanted);
  } catch {
    // Whatever else a command prints there is its own affair.
    return null;
  }
}
