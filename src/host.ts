/** The only place that reads the clock or draws randomness. */
import type { Clock, Entropy, Zone } from "./core/seams.ts";

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

/**
 * Who holds a claim: host, pid and process start time, because a pid comes back.
 * @example "desk 4711 8839201"
 */
export async function hostHolder(): Promise<string> {
  const { hostname } = await import("node:os");
  return `${hostname()} ${process.pid} ${await startTime()}`;
}

/** Ticks since boot where /proc tells them (Linux), else epoch seconds. */
async function startTime(): Promise<string> {
  const stat = await Bun.file("/proc/self/stat")
    .text()
    .catch(() => "");
  // The second field is the program's name in brackets and may hold anything; start time is the 22nd.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? String(Math.floor(performance.timeOrigin / 1_000));
}
