/** One pass: write what finished, claim what may start, start it. Everything that moves a row goes through here. */
import type { Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Exchange, Exchanged, Settlement } from "../store/store.ts";
import type { Connection } from "./connection.ts";
import type { Crew } from "./crew.ts";
import type { Faults } from "./faults.ts";
import { leaseS, type Plan } from "./plan.ts";
import { type Counters, countSettled, countTaken, type Tell } from "./report.ts";
import type { Stuck } from "./stuck.ts";

export interface TickSeams {
  readonly clock: Clock;
  readonly connection: Connection;
  readonly crew: Crew;
  readonly stuck: Stuck;
  readonly faults: Faults;
  readonly counters: Counters;
  readonly tell: Tell;
  /** Host, pid and start time of this process. */
  readonly holder: string;
  /** When it aborts, nothing more is claimed. */
  readonly stop: AbortSignal;
  /** Only rows that were due by then; null: those due now. */
  readonly drain: Drain | null;
}

/** What a run that ends by itself takes: what was due at its start, each row once. */
export interface Drain {
  /** Epoch seconds. */
  readonly dueBy: number;
  /**
   * Rows that are due by then once more although this run settled them: without a backoff, or with the clock set back. They are
   * left to the next run, or this one would not end.
   */
  readonly left: Set<number>;
}

export type Passed =
  /** Rows were moved or outcomes written: there may be more. */
  | { readonly result: "moved" }
  /** Nothing moved. `asked`: the database was asked, and answered. */
  | { readonly result: "idle"; readonly asked: boolean }
  /** The database has become newer than this binary. */
  | { readonly result: "outdated" }
  /** Nothing was written; what had finished is kept. */
  | { readonly result: "trouble"; readonly error: OutboxError };

/** @param claims whether to claim at all */
export async function tick(seams: TickSeams, plan: Plan, claims: boolean): Promise<Passed> {
  const { crew, stuck, faults } = seams;
  const again = stuck.due();
  if (again.length > 0) return oneByOne(seams, again);
  const batch = crew.finished.splice(0);
  for (const settlement of batch) faults.learn(plan, settlement);
  const free = plan.concurrency - crew.running() - stuck.settlements().length;
  const claim = claims && free > 0 && faults.pausedForMs() === 0 ? claimOf(seams, plan, free, batch) : null;
  if (batch.length === 0 && claim === null) return { result: "idle", asked: false };
  const exchanged = await exchange(seams, batch, claim);
  if (exchanged instanceof OutboxError) {
    if (isForOneRow(exchanged) && batch.length > 0) return oneByOne(seams, batch);
    crew.finished.unshift(...batch);
    return { result: "trouble", error: exchanged };
  }
  for (const row of exchanged.taken) taken(seams, plan, row);
  if (exchanged.outdated) return { result: "outdated" };
  return exchanged.taken.length > 0 ? { result: "moved" } : { result: "idle", asked: true };
}

/** Writes each outcome in a commit of its own; those that are refused alone are stuck, the others are not. */
async function oneByOne(seams: TickSeams, settlements: readonly Settlement[]): Promise<Passed> {
  for (const [index, settlement] of settlements.entries()) {
    const exchanged = await exchange(seams, [settlement], null);
    if (!(exchanged instanceof OutboxError)) continue;
    if (!isForOneRow(exchanged)) {
      seams.crew.finished.unshift(...settlements.slice(index));
      return { result: "trouble", error: exchanged };
    }
    if (seams.stuck.keep(settlement, exchanged) === "new")
      seams.tell({ kind: "stuck", dispatch: settlement.claim, outcome: settlement.outcome, error: exchanged });
  }
  return { result: "moved" };
}

/** What was settled is counted and told. Whatever goes wrong is an answer, and then nothing was written. */
async function exchange(
  { connection, holder, counters, tell, drain }: TickSeams,
  settle: readonly Settlement[],
  claim: Exchange["claim"],
): Promise<Exchanged | OutboxError> {
  let exchanged: Exchanged;
  try {
    exchanged = await connection.use((store) => store.exchange({ settle, claim, holder }));
  } catch (error) {
    return error instanceof OutboxError ? error : new OutboxError("bug", `the store failed: ${String(error)}`, "please report it");
  }
  for (const [index, { claim: dispatch, outcome }] of settle.entries()) {
    const told = exchanged.settled[index];
    if (told === undefined) continue;
    const { move, result } = told;
    if (drain !== null && move.to === "pending" && move.nextAttemptAt <= drain.dueBy) drain.left.add(dispatch.seq);
    countSettled(counters, outcome, move, result);
    tell({ kind: "settled", dispatch, outcome, move, result });
  }
  return exchanged;
}

/** Whether other outcomes may be written although this one was not: the database answers and refuses what it was told. */
function isForOneRow({ kind }: OutboxError): boolean {
  return kind === "bug" || kind === "data";
}

function claimOf(
  { faults, holder, crew, stuck, drain }: TickSeams,
  plan: Plan,
  atMost: number,
  batch: readonly Settlement[],
): Exchange["claim"] {
  return {
    dueBy: drain?.dueBy ?? null,
    atMost,
    holder,
    inHand: [
      ...crew.rows(),
      ...stuck.settlements().map(({ claim }) => claim.seq),
      // A row of this batch that is due again at once is for the next run.
      ...(drain === null ? [] : [...batch.map(({ claim }) => claim.seq), ...drain.left]),
    ],
    fallbackLeaseS: faults.stops(null) ? null : leaseS(plan.fallback),
    kinds: new Map([...plan.routes].map(([kind, route]) => [kind, faults.stops(kind) ? null : leaseS(route)])),
  };
}

function taken({ clock, counters, tell, crew, stop }: TickSeams, plan: Plan, row: Dispatch): void {
  countTaken(counters, row);
  if (row.status !== "delivering") tell({ kind: "ended", dispatch: row });
  else if (stop.aborted) crew.release(row, plan, "the runner was stopped before the command started");
  // This process was frozen meanwhile: by now the row may be another runner's.
  else if (row.next_attempt_at <= clock.now()) crew.release(row, plan, "the lease was over before the command started");
  else crew.start(row, plan);
}
