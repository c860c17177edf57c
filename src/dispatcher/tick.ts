/** One pass: write what finished, claim what may start, start it. Everything that moves a row goes through here. */
import type { Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { CircuitChange, Exchange, Exchanged, Settlement } from "../store/store.ts";
import { isRefusal } from "../store/refusal.ts";
import type { Connection } from "./connection.ts";
import type { Crew } from "./crew.ts";
import type { Faults } from "./faults.ts";
import type { Leases } from "./lease.ts";
import { leaseS, type Plan, routeOf } from "./plan.ts";
import { type Counters, countSettled, countTaken, type Tell } from "./report.ts";
import type { Stuck } from "./stuck.ts";
import type { Told } from "./told.ts";

export interface TickSeams {
  readonly clock: Clock;
  /** The source: as the settings call it, and where it is. */
  readonly name: string;
  readonly path: string;
  readonly connection: Connection;
  readonly crew: Crew;
  readonly leases: Leases;
  readonly stuck: Stuck;
  readonly told: Told;
  /** Whether this holder is a process that still lives on this host. */
  readonly isAlive: (holder: string) => boolean;
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

/** @param slots how many commands more may run; 0: nothing is claimed */
export async function tick(seams: TickSeams, plan: Plan, slots: number): Promise<Passed> {
  const { crew, stuck, faults, leases } = seams;
  const again = stuck.due();
  if (again.length > 0) return oneByOne(seams, plan, again);
  const batch = crew.finished.splice(0);
  for (const settlement of batch) faults.learn(plan, settlement);
  const claim = slots > 0 && faults.pausedForMs() === 0 ? claimOf(seams, plan, slots, batch) : null;
  const renew = leases.due();
  if (batch.length === 0 && renew.length === 0 && claim === null) return { result: "idle", asked: false };
  const exchanged = await exchange(seams, plan, { settle: batch, renew, claim });
  if (exchanged instanceof OutboxError) {
    if (isRefusal(exchanged) && batch.length > 0) return oneByOne(seams, plan, batch);
    crew.finished.unshift(...batch);
    return { result: "trouble", error: exchanged };
  }
  for (const row of exchanged.taken) await taken(seams, plan, row);
  if (exchanged.outdated) return { result: "outdated" };
  return exchanged.taken.length > 0 ? { result: "moved" } : { result: "idle", asked: true };
}

/** Writes each outcome in a commit of its own; those that are refused alone are stuck, the others are not. */
async function oneByOne(seams: TickSeams, plan: Plan, settlements: readonly Settlement[]): Promise<Passed> {
  for (const [index, settlement] of settlements.entries()) {
    const exchanged = await exchange(seams, plan, { settle: [settlement], renew: [], claim: null });
    if (!(exchanged instanceof OutboxError)) continue;
    if (!isRefusal(exchanged)) {
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
  seams: TickSeams,
  plan: Plan,
  terms: Pick<Exchange, "settle" | "renew" | "claim">,
): Promise<Exchanged | OutboxError> {
  const { connection, holder, counters, tell, drain, leases } = seams;
  const { settle, renew } = terms;
  let exchanged: Exchanged;
  try {
    exchanged = await connection.use((store) => store.exchange({ ...terms, holder, circuit: plan.circuit }));
  } catch (error) {
    return error instanceof OutboxError ? error : new OutboxError("bug", `the store failed: ${String(error)}`, "please report it");
  }
  leases.answered(renew, exchanged.renewed);
  for (const [index, { claim: dispatch, outcome }] of settle.entries()) {
    const told = exchanged.settled[index];
    if (told === undefined) continue;
    const { move, result, circuit } = told;
    if (drain !== null && move.to === "pending" && move.nextAttemptAt <= drain.dueBy) drain.left.add(dispatch.seq);
    countSettled(counters, outcome, move, result);
    tell({ kind: "settled", dispatch, outcome, move, result });
    tellCircuit(seams, plan, dispatch.deliver_to, circuit);
  }
  return exchanged;
}

function tellCircuit({ told, name, path }: TickSeams, plan: Plan, deliverTo: string, change: CircuitChange): void {
  const topic = `circuit ${path} ${deliverTo}`;
  if (change === "closed") told.end(topic, { kind: "circuit over", source: name, deliverTo });
  else if (change !== null)
    told.begin(topic, { kind: "circuit", source: name, deliverTo, cooldownMs: plan.circuit.cooldownS * 1_000 }, "open");
}

function claimOf(
  { faults, isAlive, crew, stuck, drain }: TickSeams,
  plan: Plan,
  atMost: number,
  batch: readonly Settlement[],
): Exchange["claim"] {
  return {
    dueBy: drain?.dueBy ?? null,
    atMost,
    perDestination: plan.perDestination,
    isAlive,
    inHand: [
      ...crew.rows(),
      ...stuck.settlements().map(({ claim }) => claim.seq),
      // A row of this batch that is due again at once is for the next run.
      ...(drain === null ? [] : [...batch.map(({ claim }) => claim.seq), ...drain.left]),
    ],
    ...leaseTerms(plan, faults),
  };
}

/** What is claimed at the moment, and for how long. */
export function leaseTerms(plan: Plan, faults: Pick<Faults, "stops">): Pick<NonNullable<Exchange["claim"]>, "fallbackLeaseS" | "kinds"> {
  return {
    fallbackLeaseS: faults.stops(null) ? null : leaseS(plan.fallback),
    kinds: new Map([...plan.routes].map(([kind, route]) => [kind, faults.stops(kind) ? null : leaseS(route)])),
  };
}

/** A claim older than this is renewed before its command starts: the process may have been frozen in between. */
const STALE_CLAIM_S = 1;

/** What a claim gave: its command starts, unless the runner was stopped meanwhile or the claim has become somebody else's. */
export async function taken(seams: TickSeams, plan: Plan, row: Dispatch): Promise<void> {
  const { counters, tell, crew, stop, clock } = seams;
  countTaken(counters, row);
  if (row.status !== "delivering") return tell({ kind: "ended", dispatch: row });
  let sureAt = row.updated_at;
  let sureForS = STALE_CLAIM_S;
  while (Math.abs(clock.now() - sureAt) > sureForS && !stop.aborted) {
    sureAt = clock.now();
    const ours = await isStillOurs(seams, plan, row);
    if (ours === "lost") return; // what becomes of it is decided by whoever has it
    if (ours === "unknown") return crew.release(row, plan, "its claim could not be renewed");
    // A slow disk is no reason to ask again, a clock that was set meanwhile is.
    sureForS = leaseS(routeOf(plan, row.kind)) / 2;
  }
  if (stop.aborted) return crew.release(row, plan, "the runner was stopped");
  crew.start(row, plan);
}

async function isStillOurs(seams: TickSeams, plan: Plan, row: Dispatch): Promise<"ours" | "lost" | "unknown"> {
  const renewal = { seq: row.seq, lockToken: row.lock_token ?? "", leaseS: leaseS(routeOf(plan, row.kind)) };
  const exchanged = await exchange(seams, plan, { settle: [], renew: [renewal], claim: null });
  if (exchanged instanceof OutboxError) return "unknown";
  return exchanged.renewed[0] === true ? "ours" : "lost";
}
