/**
 * A command line run by the test's own process: the same arguments, settings, checks and texts, without the start of a program.
 * For what a test only prepares or looks up, and for texts and codes; what a process does (its streams, signals and terminals, the way in
 * of `enqueue`, its end) only `dist/outbox` shows.
 */
import type { Io } from "../../src/cli/io.ts";
import { run } from "../../src/cli/run.ts";
import { hostClock, hostEntropy } from "../../src/host.ts";
import type { Result } from "./outbox.ts";

// Loaded beforehand: otherwise the first call keeps all tests that run side by side waiting.
await import("../../src/cli/commands/enqueue.ts");

interface Surroundings {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Left out: there is none, as with /dev/null. */
  readonly stdin?: string | Uint8Array | undefined;
}

export async function inProcess(args: readonly string[], { cwd, env, stdin = "" }: Surroundings): Promise<Result> {
  const written = { stdout: "", stderr: "" };
  const io: Io = {
    env,
    cwd,
    uid: process.getuid?.() ?? 0,
    clock: hostClock,
    entropy: hostEntropy,
    zone: { utcOffsetS: (epochS) => offsetIn(env["TZ"] ?? "UTC", epochS) },
    out: (text) => void (written.stdout += text.toWellFormed()),
    err: (line) => void (written.stderr += `${line.toWellFormed()}\n`),
    stdin: () => new Blob([stdin]).stream(),
    terminal: () => ({ stdout: false, stderr: false, columns: null, color: false }),
    interrupts: () => {
      const never = new AbortController().signal;
      return { stop: never, now: never, onHangup: () => undefined, onSignal: () => undefined };
    },
  };
  return { code: await run(args, io), ...written };
}

/** This process has a zone of its own, and can have no other for one call. */
function offsetIn(timeZone: string, epochS: number): number {
  const at = Math.floor(epochS) * 1_000;
  const local = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  return (Date.parse(`${local.format(at).replace(" ", "T")}Z`) - at) / 1_000;
}
