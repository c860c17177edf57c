/**
 * One dispatch whose claim was made at its entry is sent by the process that entered it, by the rules of every runner: its lease is
 * renewed, its outcome is written or kept until it is, a signal lets it finish. Nothing else is claimed.
 */
import type { Dispatch } from "../core/dispatch.ts";
import type { OutboxError } from "../core/errors.ts";
import { bell } from "./bell.ts";
import type { Faults } from "./faults.ts";
import { instant } from "./instant.ts";
import type { Plan } from "./plan.ts";
import { newCounters } from "./report.ts";
import type { RunnerSeams } from "./runner.ts";
import { source, type SourceSpec } from "./sources.ts";
import { told } from "./told.ts";

export type InlineSeams = Omit<RunnerSeams, "sources" | "plan" | "watch" | "isAlive" | "onWake"> & {
  readonly source: SourceSpec;
  readonly plan: Plan;
};

/** Its route was looked up before the claim, and what the routes of others are at is their runner's to tell. */
const NO_FAULTS: Faults = {
  look: () => {},
  learn: () => {},
  conclude: () => {},
  stops: () => false,
  pausedForMs: () => 0,
  againInMs: () => Number.POSITIVE_INFINITY,
  first: null,
};

/** Longest sleep between two looks: at the clock, and at a signal that came while the database was asked. */
const HEARTBEAT_MS = 1_000;

/**
 * Sends a claimed dispatch and settles it. Returns when that is written, or cannot be; never rejects for trouble with the database.
 * @returns the trouble that kept its outcome from being written
 */
export async function runClaim(seams: InlineSeams, claim: Dispatch): Promise<OutboxError | null> {
  const { clock, plan, stop, now, tell } = seams;
  const alarm = bell(clock);
  const kill = new AbortController();
  const memory = told(() => clock.monotonicMs(), tell);
  let stoppedAtMs: number | null = null;
  const graceLeftMs = (): number => {
    if (!stop.aborted || kill.signal.aborted) return Number.POSITIVE_INFINITY;
    stoppedAtMs ??= clock.monotonicMs();
    return Math.max(0, stoppedAtMs + plan.shutdownGraceMs - clock.monotonicMs());
  };
  stop.addEventListener("abort", alarm.ring);
  now.addEventListener("abort", () => {
    kill.abort();
    alarm.ring();
  });
  const { source: spec, transport, holder } = seams;
  const shared = { clock, transport, holder, tell, stop, faults: NO_FAULTS, told: memory, counters: newCounters(), isAlive: () => false };
  const hands = source(spec, { ...shared, kill: kill.signal, now, ring: alarm.ring, drain: null, watch: null });
  await hands.take(claim, plan);
  for (;;) {
    if (graceLeftMs() === 0) kill.abort();
    const passBegan = instant(clock);
    const { result } = await hands.pass(plan, 0);
    await memory.flush(hands.hasAnswered() && hands.error() === null ? [hands] : []);
    const gaveUp = hands.givesUp(stoppedAtMs);
    if (gaveUp !== null || (hands.error() === null && hands.isDone())) {
      for (const { claim: dispatch, outcome } of hands.unwritten()) tell({ kind: "unwritten", dispatch, outcome });
      await hands.close();
      return gaveUp;
    }
    if (result === "moved") continue;
    await alarm.wait(Math.min(await hands.untilMs(plan, passBegan), graceLeftMs(), HEARTBEAT_MS));
    await clock.sleep(0);
  }
}
