/** The only place that reads the clock or draws randomness. */
import type { Clock, Entropy, Standing, Zone } from "./core/seams.ts";

/** Longest delay a timer takes; beyond it Bun fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const hostClock: Clock = {
  now: () => Date.now() / 1_000,
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      // A timer of 0 takes a whole millisecond.
      if (ms <= 0) return void setImmediate(resolve);
      const wake = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, Math.min(ms, MAX_TIMER_MS));
      signal?.addEventListener("abort", wake, { once: true });
    }),
};

export const hostZone: Zone = {
  utcOffsetS: (epochS) => new Date(epochS * 1_000).getTimezoneOffset() * -60,
};

export const hostEntropy: Entropy = {
  id: () => Bun.randomUUIDv7().replaceAll("-", ""),
  signalId: () => crypto.randomUUID(),
  token: () => crypto.getRandomValues(new Uint8Array(16)).toHex(),
  random: () => Math.random(),
};

/** Who holds a claim: host, pid and process start time, because a pid comes back. */
export interface Holders {
  /** @example "desk 4711 8839201" */
  readonly own: string;
  /** Whether this holder is a process that still lives on this host. */
  isAlive(holder: string): boolean;
}

export async function hostHolders(): Promise<Holders> {
  const [{ hostname }, { readFileSync }] = await Promise.all([import("node:os"), import("node:fs")]);
  const lives = process.platform === "linux" ? (pid: string, start: string) => startOf(readFileSync, pid) === start : isProcess;
  const host = hostname();
  return {
    own: ownHolder(),
    isAlive(holder) {
      const [start = "", pid = "", ...rest] = holder.split(" ").toReversed();
      return rest.toReversed().join(" ") === host && /^[0-9]+$/.test(pid) && lives(pid, start);
    },
  };
}

/** This process as a holder, known at once: a program claims within its own synchronous transaction. */
export function ownHolder(): string {
  const [os, fs] = [process.getBuiltinModule("node:os"), process.getBuiltinModule("node:fs")];
  return `${os.hostname()} ${process.pid} ${startOf(fs.readFileSync, "self") ?? Math.floor(performance.timeOrigin / 1_000)}`;
}

/**
 * What is known of a process, by what it is called as a holder. Only /proc tells one that lives from one that came later with its
 * number; where it is not to be had, a number that somebody has says nothing, and one that nobody has everything.
 */
export function standingOf(holder: string): Standing {
  const [os, fs] = [process.getBuiltinModule("node:os"), process.getBuiltinModule("node:fs")];
  const [, host, pid = "", start] = /^(.*) ([0-9]+) ([0-9]+)$/s.exec(holder) ?? [];
  if (host !== os.hostname()) return "unknown";
  const found = startOf(fs.readFileSync, pid);
  if (found !== null) return found === start ? "alive" : "gone";
  const isSeen = startOf(fs.readFileSync, "self") !== null;
  return (isSeen ? isHidden(pid) : isProcess(pid)) ? "unknown" : "gone";
}

/** Whether /proc may keep it from us: it is there, and of another user. */
function isHidden(pid: string): boolean {
  try {
    process.kill(Number(pid), 0);
    return false; // ours, so it has ended and was not waited for yet
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** When a process started, in ticks since boot, where /proc tells it; null: there is no such process, or it has ended. */
function startOf(read: (path: string, encoding: "utf8") => string, pid: string): string | null {
  try {
    const stat = read(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may hold anything; the state is the 3rd, the start time the 22nd.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** Elsewhere a pid has to do: one that came back makes a row wait one lease more, no worse. */
function isProcess(pid: string): boolean {
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
