/** Taking turns: `runOnce` drains what was due at its start, `runForever` goes on until it is stopped. */
import { type Ran, type RunnerSeams, startRunner } from "./runner.ts";

export type { Ran, RunnerSeams };

/** Drains what was due at its start, rows behind it in order included, then returns. */
export async function runOnce(seams: RunnerSeams): Promise<Ran> {
  const runner = startRunner(seams, true);
  for (;;) {
    const passed = await runner.pass();
    if (passed.result === "moved") continue;
    if (passed.result === "outdated") runner.retire();
    const error = passed.result === "trouble" ? passed.error : null;
    const reason = runner.givesUp(error);
    if (reason !== null) return runner.end(reason);
    if (error !== null) await runner.backOff(error);
    else if (runner.isDone()) return runner.end(runner.fault());
    else await runner.rest(Number.POSITIVE_INFINITY);
  }
}

/** Goes on until it is stopped, or until the database becomes newer than this binary. */
export async function runForever(seams: RunnerSeams): Promise<Ran> {
  const runner = startRunner(seams, false);
  let answered = false;
  for (;;) {
    const passed = await runner.pass();
    if (passed.result === "moved") continue;
    const error = passed.result === "trouble" ? passed.error : null;
    // Newer already at the start: another binary is needed, waiting does not help.
    if (error?.kind === "settings" && !answered) return runner.end(error);
    answered ||= passed.result !== "trouble";
    if (passed.result === "outdated" || error?.kind === "settings") runner.retire();
    const reason = runner.isRetired() ? runner.givesUp(error) : null;
    if (reason !== null) return runner.end(runner.isDone() ? null : reason);
    if (error !== null) await runner.backOff(error);
    else if (runner.isRetired() && runner.isDone()) return runner.end(null);
    else await runner.rest(await runner.untilDueMs());
  }
}
