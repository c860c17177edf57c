/** Taking turns: `runOnce` drains what was due at its start, `runForever` goes on until it is stopped. */
import { OutboxError } from "../core/errors.ts";
import { isLasting } from "../store/refusal.ts";
import { HEARTBEAT_MS, newerSchema, type Ran, type Runner, type RunnerSeams, startRunner } from "./runner.ts";
import type { Source } from "./sources.ts";

export type { Ran, RunnerSeams };

/** Drains what was due at its start, rows behind it in order included, sweeps, and returns. */
export async function runOnce(seams: RunnerSeams): Promise<Ran> {
  const runner = startRunner(seams, true);
  let ends: ReturnType<typeof endOf>[] = [];
  for (;;) {
    if ((await runner.pass()) === "moved") continue;
    ends = runner.sources.map((source) => endOf(source, runner));
    if (!ends.includes(null)) break;
    await runner.rest(Math.min(await runner.untilDueMs(), HEARTBEAT_MS));
  }
  while (!seams.stop.aborted && (await runner.sweep()));
  // Of the trouble that is left: a source that came back was worked through.
  const trouble = ends.find((end) => end instanceof OutboxError) ?? null;
  return runner.end(trouble ?? outdated(runner) ?? runner.fault());
}

/** Goes on until it is stopped, until a database becomes newer than this binary, or where none could be opened to begin with. */
export async function runForever(seams: RunnerSeams): Promise<Ran> {
  const runner = startRunner(seams, false);
  for (;;) {
    if ((await runner.pass()) === "moved") continue;
    // Refused at the start for good: told and passed over. Where nothing else is to be drained, somebody has to see to it first.
    const refused = runner.sources.flatMap((source) => (source.hasAnswered() ? [] : (source.error() ?? [])));
    if (refused.length === runner.sources.length && refused.every(isLasting)) return runner.end(refused[0] ?? null);
    const newer = outdated(runner);
    if (newer !== null) for (const source of runner.sources) source.retire();
    if (newer === null && !seams.stop.aborted) await idle(runner, seams);
    else {
      const ends = runner.sources.map((source) => (source.isDone() ? "done" : endOf(source, runner)));
      const reason = ends.find((end) => end instanceof OutboxError) ?? null;
      if (!ends.includes(null)) return runner.end(newer ?? reason);
      await runner.rest(Math.min(await runner.untilDueMs(), HEARTBEAT_MS));
    }
  }
}

/** How a source is through: "done", the trouble that it is left in, or null: it is not. */
function endOf(source: Source, runner: Runner): "done" | OutboxError | null {
  const reason = source.givesUp(runner.stoppedAtMs());
  if (reason !== null) return reason;
  return source.error() === null && source.isDone() ? "done" : null;
}

/** A source that turned newer while it was drained: at a tick, or when its handle had to be opened anew. */
function outdated(runner: Runner): OutboxError | null {
  const found = runner.sources.find((source) => source.isOutdated() || (source.hasAnswered() && source.error()?.kind === "settings"));
  return found === undefined ? null : newerSchema(found.path);
}

/** Sleeps until something is due, finishes or is new; sweeps when there is time. */
async function idle(runner: Runner, { clock, stop }: RunnerSeams): Promise<void> {
  const untilMs = clock.monotonicMs() + (await runner.untilDueMs());
  const offsetMs = (): number => clock.now() * 1_000 - clock.monotonicMs();
  const began = offsetMs();
  while (clock.monotonicMs() < untilMs && !stop.aborted) {
    const more = await runner.sweep();
    await runner.rest(more ? 0 : Math.min(untilMs - clock.monotonicMs(), runner.untilBeatMs()));
    // A clock that was set, or a machine that slept, moved every due time and every lease.
    if (Math.abs(offsetMs() - began) > HEARTBEAT_MS || runner.sources.some((source) => source.wantsPass())) return;
    await runner.beat();
    if (await runner.news()) return;
  }
}
