/**
 * Ends a whole process group. A command is started as the leader of its own, and a session leader cannot leave its group, so what
 * it started is reached too, unless that made a session of its own.
 */
import type { Clock } from "../core/seams.ts";

/** From SIGTERM to SIGKILL, in milliseconds. */
const TERM_GRACE_MS = 2_000;

/** How long a killed group may take to vanish: a process in an uninterruptible wait outlives SIGKILL, and nobody waits for it. */
const KILL_GRACE_MS = 300;

/** How often the group is looked at in between. Costs one system call. */
const LOOK_MS = 10;

/**
 * SIGTERM, then SIGKILL as soon as 2 s are over or `hurry` says so; returns once nothing of the group is left, at the latest 2.3 s
 * after it was called. The members of the group have the whole grace, also when their leader goes first: a shell dies at once of a
 * signal that its child wants to answer in an orderly way.
 */
export async function endGroup(group: number, hurry: () => boolean, clock: Clock): Promise<void> {
  if (!hurry()) {
    signalGroup(group, "SIGTERM");
    // A stopped process takes the signal only when it goes on.
    signalGroup(group, "SIGCONT");
    const until = clock.monotonicMs() + TERM_GRACE_MS;
    while (groupLives(group) && !hurry() && clock.monotonicMs() < until) await clock.sleep(LOOK_MS);
  }
  const until = clock.monotonicMs() + KILL_GRACE_MS;
  while (groupLives(group) && clock.monotonicMs() < until) {
    signalGroup(group, "SIGKILL");
    await clock.sleep(LOOK_MS);
  }
}

/** Whether anything of the group is left, a dead process that nobody has waited for included. */
export function groupLives(group: number): boolean {
  return signalGroup(group, 0);
}

/** False when there is no such group. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    // Anything but "no such process" (EPERM: it runs as somebody else by now) means that something is there.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}
