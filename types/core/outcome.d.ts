/** What an attempt came to: the transport says it, `lifecycle.ts` decides what follows. */
/** What was seen of a command that started. Kept in the history as `metadata`. */
export interface Report {
    /** Exit code; null when it died by a signal. */
    readonly exit: number | null;
    /** Signal name, for example `SIGKILL`; null when it exited. */
    readonly signal: string | null;
    /** How long it ran, in milliseconds. */
    readonly durationMs: number;
    /** First bytes of its output, both streams as they arrived, as text without NUL. */
    readonly head: string;
    /** Last bytes of its output, empty when `head` holds everything. */
    readonly tail: string;
}
export type Outcome = 
/** The command started and exited 0: it took the message, no more. */
{
    readonly kind: "ok";
    readonly report: Report;
}
/** The command started and failed: exit code, signal or timeout. `retryAfterMs`: the wait that it asked for. */
 | {
    readonly kind: "failed";
    readonly report: Report;
    readonly error: string;
    readonly retryAfterMs: number | null;
}
/** It can never succeed: a permanent exit code (with a report), or an argv that can never be executed (without). */
 | {
    readonly kind: "rejected";
    readonly report: Report | null;
    readonly error: string;
}
/** The configuration is at fault: no such command, not executable. It never started. */
 | {
    readonly kind: "fault";
    readonly error: string;
}
/** No route for this kind while routes exist and there is no default template. It never started. */
 | {
    readonly kind: "unresolvable";
    readonly error: string;
}
/** It never started and that is nobody's fault: shutdown, or the machine out of resources. */
 | {
    readonly kind: "released";
    readonly error: string;
    readonly exhausted: boolean;
};
