/**
 * The argv transport: one command, from its start until nothing of it is our concern. Its exit decides, not its open pipes; its
 * streams are always read, so that it never blocks on them, and never kept beyond a bound.
 */
import type { Outcome } from "../core/outcome.ts";
import type { Clock } from "../core/seams.ts";
import { createCapture } from "./capture.ts";
import { endGroup } from "./group.ts";
import { lookUp } from "./look_up.ts";
import { type Child, start } from "./start.ts";
import type { Job, Transport } from "./transport.ts";
import { type Stopped, verdict } from "./verdict.ts";

/** How long output is still read after the exit, in milliseconds: a process that was left behind may hold the pipe for ever. */
const DRAIN_MS = 200;

/**
 * After so many commands, or so many bytes of their stdin, garbage is collected: Bun keeps what was a command's stdin open, in a
 * file in memory, until the object of the process is collected, and left alone that took 140 commands (measured, Bun 1.4.5).
 */
const COLLECT_COMMANDS = 64;
const COLLECT_BYTES = 16 * 1_048_576;

/** The transport that starts commands on this machine. */
export function createSpawnTransport(clock: Clock): Transport {
  let commands = 0;
  let bytes = 0;
  const collect = (stdin: Uint8Array): void => {
    if (stdin.length === 0) return;
    commands += 1;
    bytes += stdin.length;
    if (commands < COLLECT_COMMANDS && bytes < COLLECT_BYTES) return;
    commands = bytes = 0;
    Bun.gc(true);
  };
  return {
    async run(job, kill, now) {
      if (kill.aborted) return { kind: "released", error: "the runner stopped before the command started", exhausted: false };
      const startedAt = clock.monotonicMs();
      collect(job.stdin);
      const child = start(job);
      return "kind" in child ? child : attend(child, job, { kill, now }, startedAt, clock);
    },
    fault(argv0, env) {
      const found = lookUp(argv0, env);
      return found.kind === "fault" ? found.error : null;
    },
  };
}

/** What ends a command from outside: in order, and without waiting. */
interface Ends {
  readonly kill: AbortSignal;
  readonly now: AbortSignal;
}

async function attend(child: Child, job: Job, ends: Ends, startedAt: number, clock: Clock): Promise<Outcome> {
  const capture = createCapture(job.outputLimit);
  const stdout = child.stdout.getReader();
  const stderr = child.stderr.getReader();
  const drained = new AbortController();
  void Promise.all([read(stdout, capture.stdout), read(stderr, capture.stderr)]).then(() => drained.abort());

  const stopped = await untilEnded(child, job.timeoutMs, startedAt, ends, clock);
  const durationMs = Math.round(clock.monotonicMs() - startedAt);

  await clock.sleep(DRAIN_MS, drained.signal);
  const captured = capture.captured();
  for (const reader of [stdout, stderr]) void reader.cancel().catch(() => {});
  child.unref();
  return verdict(
    { ...captured, exit: child.exitCode, signal: child.signalCode === null ? null : String(child.signalCode), stopped, durationMs },
    job,
  );
}

/** Waits until the command has ended, by itself (null) or by us. */
async function untilEnded(child: Child, timeoutMs: number, startedAt: number, { kill, now }: Ends, clock: Clock): Promise<Stopped | null> {
  const woken = new AbortController();
  const wake = (): void => woken.abort();
  void child.exited.then(wake, wake);
  kill.addEventListener("abort", wake, { once: true });
  // A timer may be shorter than what is asked of it, so the clock is asked again.
  const left = (): number => startedAt + timeoutMs - clock.monotonicMs();
  while (!woken.signal.aborted && left() > 0) await clock.sleep(left(), woken.signal);
  // Timers go before the news of an exit when something has blocked the event loop; one turn more lets it arrive.
  if (!hasEnded(child)) await clock.sleep(1);
  kill.removeEventListener("abort", wake);
  if (hasEnded(child)) return null;
  const stopped = kill.aborted ? "kill" : "timeout";
  await endGroup(child.pid, () => now.aborted, clock);
  return stopped;
}

function hasEnded(child: Child): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** The part of a stream's reader that is used; its declared type differs between the two libraries that declare it. */
interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

/** Reads a stream to its end or until the reader is cancelled. A stream that breaks has ended. */
async function read(reader: Reader, take: (chunk: Uint8Array) => void): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || value === undefined) return;
      take(value);
    }
  } catch {
    // The exit code says what became of the command.
  }
}
