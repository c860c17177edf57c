/** What should have been taken long since: a row that is due, that nothing keeps, and that an idle runner leaves lying. */
import type { State } from "./state.ts";

/** A runner that is idle looks once a second, and its interval is twice as long: whatever waits for that is late. */
const SOON_MS = 2_500;
/** A machine out of resources, or a disk in trouble, is left alone for an interval, and a route that was mended is seen at the next pass. */
const PAUSE_MS = 6_500;

/** @returns what is wrong; null: nothing, or nothing that is sure to be */
export function wrongWait({ clock, rows, holds, circuits, runners, brokenUntilMs, ...state }: State): string | null {
  const nowMs = clock.monotonicMs();
  const isLongAgo = (ms: number, longMs = SOON_MS): boolean => ms < nowMs - longMs;
  // Somebody works, or did just now, or has a reason to wait.
  if (!isLongAgo(state.workedAtMs) || !isLongAgo(state.steppedAtMs) || !isLongAgo(state.refusedAtMs, PAUSE_MS) || holds.size > 0)
    return null;
  const idle = [...runners].find(
    ([runner, startedMs]) =>
      runner.isAlive() &&
      !runner.stop.signal.aborted &&
      runner.mishaps.length === 0 &&
      isLongAgo(startedMs) &&
      isLongAgo(runner.troubledAtMs(), PAUSE_MS),
  );
  if (idle === undefined || [...rows.values()].some(({ status }) => status === "delivering")) return null;
  for (const { seq, status, kind, deliver_to, ordering_key, next_attempt_at } of rows.values()) {
    const isKept = ordering_key !== null || (circuits.get(deliver_to)?.open_until ?? null) !== null;
    if (status !== "pending" || isKept || !isLongAgo(brokenUntilMs.get(kind) ?? -PAUSE_MS, PAUSE_MS)) continue;
    const dueMs = (clock.now() - next_attempt_at) * 1_000;
    if (dueMs > SOON_MS) return `row ${seq} is due since ${dueMs.toFixed(0)} ms, nothing keeps it, and ${idle[0].name} is idle`;
  }
  return null;
}
