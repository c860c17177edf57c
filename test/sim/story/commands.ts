/** The commands that runners start. They do what the message's acts say, and live on when their runner is killed. */
import type { Database } from "bun:sqlite";
import type { Outcome, Report } from "../../../src/core/outcome.ts";
import type { Transport } from "../../../src/transport/transport.ts";
import type { VirtualClock } from "../time.ts";
import type { Process } from "./process.ts";
import type { Act } from "./words.ts";

/** A command that started, or the function of a program. */
export interface Command {
  readonly seq: number;
  readonly token: string;
  readonly by: Process;
  readonly isProgram: boolean;
  readonly startedMs: number;
  endedMs: number | null;
  outcome: Outcome["kind"] | null;
  retryAfterMs: number | null;
}

export interface Stage {
  readonly db: Database;
  readonly clock: VirtualClock;
  /** What the commands of a row still do, in order, once one of them has started. */
  readonly acts: Map<number, Act[]>;
  /** Nothing goes wrong any more. */
  calm: boolean;
  /** The judge looks at every start. */
  readonly starts: (command: Command) => void;
  /** A command could not be started. */
  readonly refuses: () => void;
  /** A command acknowledges its own message. */
  readonly acknowledge: (seq: number) => void;
}

const QUICK: Act = { outcome: "ok", ms: 5 };
/** How long a command that nobody ends goes on. */
const ORPHAN_MS = 40_000;

/** What the next command of a row does: its message says so. */
export function nextAct({ acts, calm }: Stage, seq: number, payload: string): Act {
  const { body } = JSON.parse(payload) as { body: { acts: Act[] } };
  const left = acts.get(seq) ?? [...body.acts];
  acts.set(seq, left);
  const act = left.shift();
  return act === undefined || calm ? QUICK : act;
}

export function newCommand(by: Process, seq: number, token: string, startedMs: number, isProgram = false): Command {
  return { seq, token, by, isProgram, startedMs, endedMs: null, outcome: null, retryAfterMs: null };
}

export function transportOf(stage: Stage, process: Process): Transport {
  const { clock, starts, refuses, acknowledge } = stage;
  return {
    fault: () => null,
    async run(job, kill, now) {
      const seq = Number(job.argv[1]);
      const act = nextAct(stage, seq, job.argv[3] ?? "");
      if (act.outcome === "fault" || act.outcome === "exhausted") refuses();
      if (act.outcome === "fault") return { kind: "fault", error: "no interpreter" };
      if (act.outcome === "exhausted") return { kind: "released", error: "no room (EAGAIN)", exhausted: true };
      const command = newCommand(process, seq, job.argv[2] ?? "", clock.monotonicMs());
      starts(command);
      const hangs = act.outcome === "hang" || act.outcome === "never";
      if (act.outcome === "stuck") await clock.sleep(ORPHAN_MS);
      await clock.sleep(act.outcome === "never" ? ORPHAN_MS * 10 : hangs ? job.timeoutMs : act.ms, kill);
      // A group that is ended in order may take its time. One that nobody ends goes on.
      if (hangs || kill.aborted) await (process.isAlive() ? clock.sleep(2_000, now) : clock.sleep(ORPHAN_MS));
      if (act.acks === true) acknowledge(seq);
      const outcome = kill.aborted ? failed("stopped by the runner") : hangs ? failed("timed out") : cameTo(act);
      command.endedMs = clock.monotonicMs();
      command.outcome = outcome.kind;
      command.retryAfterMs = outcome.kind === "failed" ? outcome.retryAfterMs : null;
      return process.cross(outcome);
    },
  };
}

const REPORT: Report = { exit: 0, signal: null, durationMs: 1, head: "", tail: "" };

function failed(error: string, retryAfterMs: number | null = null): Outcome {
  return { kind: "failed", report: { ...REPORT, exit: 1 }, error, retryAfterMs };
}

function cameTo({ outcome, retryAfterMs }: Act): Outcome {
  if (outcome === "reject") return { kind: "rejected", report: REPORT, error: "never" };
  return outcome === "fail" ? failed("exit 1", retryAfterMs ?? null) : { kind: "ok", report: REPORT };
}
