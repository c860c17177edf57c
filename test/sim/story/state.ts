/** What the judge knows: the rows as the journal tells them, and what he counts for himself. */
import type { Outcome } from "../../../src/core/outcome.ts";
import type { VirtualClock } from "../time.ts";
import type { Command } from "./commands.ts";
import type { CircuitRow, HoldRow, Row } from "./journal.ts";
import type { Process } from "./process.ts";

/** A claim: whose, when (monotonic), and the command that started under it. */
export interface Claimed {
  readonly by: Process;
  readonly atMs: number;
  /** Whether its lease was ever renewed. */
  renewed: boolean;
  command: Command | null;
}

/** What the judge counts of a row. */
export interface Tally {
  /** Moves since it entered, births included. */
  moves: number;
  /** Claims that were not given back, since it entered or was last put back by an operator. */
  claims: number;
  /** Commands since then. */
  starts: number;
}

export interface State {
  readonly clock: VirtualClock;
  readonly rows: Map<number, Row>;
  readonly tallies: Map<number, Tally>;
  readonly claims: Map<string, Claimed>;
  readonly commands: Command[];
  readonly holds: Map<number, HoldRow>;
  readonly circuits: Map<string, CircuitRow>;
  /** Failures in a row, as the judge counts them, of each destination. */
  readonly failures: Map<string, number>;
  readonly processes: Map<string, Process>;
  /** How many claims were made. */
  claimed: number;
  /** Tokens of consumers, and whose each is. */
  readonly handling: Map<string, Process>;
  /** How many attempts ended. */
  attempts: number;
  /** Runners that go on until they are stopped, and when each was started, monotonic. */
  readonly runners: Map<Process, number>;
  /** Until when the command of a kind cannot be found, monotonic. */
  readonly brokenUntilMs: Map<string, number>;
  /** When a claim was last made or ended, and when a command last did not start, monotonic; -1: never. */
  workedAtMs: number;
  refusedAtMs: number;
  /** When a transaction last ended that kept all others from writing for long, monotonic; -1: never. */
  stalledAtMs: number;
  /** When the wall clock was last set, monotonic; -1: never. */
  steppedAtMs: number;
  /** Whether it was ever set back. */
  setBack: boolean;
}

/** An outcome on its way into the database, as a runner hands it over. */
export interface Settling {
  readonly token: string;
  readonly seq: number;
  readonly to: string;
  readonly outcome: Outcome["kind"];
}

export function newState(clock: VirtualClock): State {
  return {
    clock,
    rows: new Map(),
    tallies: new Map(),
    claims: new Map(),
    commands: [],
    holds: new Map(),
    circuits: new Map(),
    failures: new Map(),
    processes: new Map(),
    claimed: 0,
    handling: new Map(),
    attempts: 0,
    runners: new Map(),
    brokenUntilMs: new Map(),
    workedAtMs: -1,
    refusedAtMs: -1,
    stalledAtMs: -1,
    steppedAtMs: -1,
    setBack: false,
  };
}

export function isOver({ status }: Pick<Row, "status">): boolean {
  return status !== "pending" && status !== "delivering";
}

/** Delivering with a lease that is not over at this time. */
export function isLive(row: Row, at: number): boolean {
  return row.status === "delivering" && row.next_attempt_at > at;
}
