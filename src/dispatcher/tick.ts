/** One pass: write what finished, claim what may start, start it. Everything that moves a row goes through here. */
import type { Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import type { Clock } from "../core/seams.ts";
import type { Exchange, Exchanged, Settlement } from "../store/store.ts";
import type { Connection } from "./connection.ts";
import type { Crew } from "./crew.ts";
import type { Faults } from "./faults.ts";
import { leaseS, type Plan, routeName } from "./plan.ts";
import { type Counters, countSettled, countTaken, type Tell } from "./report.ts";

export interface TickSeams {
  readonly clock: Clock;
  readonly connection: Connection;
  readonly crew: Crew;
  readonly faults: Faults;
  readonly counters: Counters;
  readonly tell: Tell;
  /** Host, pid and start time of this process. */
  readonly holder: string;
  /** When it aborts, nothing more is claimed. */
  readonly stop: AbortSignal;
}

export type Passed =
  /** Rows were moved: there may be more. */
  | { readonly result: "moved" }
  /** Nothing moved. `asked`: the database was asked, and answered. */
  | { readonly result: "idle"; readonly asked: boolean }
  /** The database has become newer than this binary. */
  | { readonly result: "outdated" }
  /** Nothing was written; what had finished is kept. */
  | { readonly result: "trouble"; readonly error: OutboxError };

/**
 * @param dueBy only rows due by then, epoch seconds; null: due now
 * @param claims whether to claim at all
 */
export async function tick(seams: TickSeams, plan: Plan, dueBy: number | null, claims: boolean): Promise<Passed> {
  const { crew, connection, holder } = seams;
  const batch = crew.finished.splice(0);
  const free = plan.concurrency - crew.running();
  const claim = claims && free > 0 ? claimOf(seams, plan, dueBy, free) : null;
  if (batch.length === 0 && claim === null) return { result: "idle", asked: false };
  let exchanged: Exchanged;
  try {
    exchanged = await connection.use((store) => store.exchange({ settle: batch, claim, holder }));
  } catch (error) {
    crew.finished.unshift(...batch);
    // Whatever it was, the outcomes are kept: a bug in one statement must not lose what other commands came to.
    return {
      result: "trouble",
      error: error instanceof OutboxError ? error : new OutboxError("bug", `the store failed: ${String(error)}`, "please report it"),
    };
  }
  for (const [index, settlement] of batch.entries()) settled(seams, plan, settlement, exchanged.settled[index]);
  for (const row of exchanged.taken) taken(seams, plan, row);
  if (exchanged.outdated) return { result: "outdated" };
  return exchanged.taken.length > 0 ? { result: "moved" } : { result: "idle", asked: true };
}

function claimOf({ faults, holder, crew }: TickSeams, plan: Plan, dueBy: number | null, atMost: number): Exchange["claim"] {
  return {
    dueBy,
    atMost,
    holder,
    inHand: crew.inHand(),
    fallbackLeaseS: faults.stops(null) ? null : leaseS(plan.fallback),
    kinds: new Map([...plan.routes].map(([kind, route]) => [kind, faults.stops(kind) ? null : leaseS(route)])),
  };
}

function settled(
  { counters, tell, faults }: TickSeams,
  plan: Plan,
  { claim, outcome, policy }: Settlement,
  told: Exchanged["settled"][number] | undefined,
): void {
  if (told === undefined) return;
  const { move, result } = told;
  countSettled(counters, outcome, move, result);
  if (outcome.kind === "fault" && policy.onConfigError === "wait")
    faults.started(routeName(plan, claim.kind), outcome.error, policy.backoff.baseMs);
  if (outcome.kind === "released" && outcome.exhausted) faults.exhausted(outcome.error);
  tell({ kind: "settled", dispatch: claim, outcome, move, result });
}

function taken({ counters, tell, crew, stop }: TickSeams, plan: Plan, row: Dispatch): void {
  countTaken(counters, row);
  if (row.status !== "delivering") return tell({ kind: "ended", dispatch: row });
  if (!stop.aborted) return crew.start(row, plan);
  const policy = (plan.routes.get(row.kind) ?? plan.fallback)?.policy ?? plan.policy;
  crew.finished.push({
    claim: row,
    outcome: { kind: "released", error: "the runner was stopped before the command started", exhausted: false },
    policy,
  });
}
