/** What a runner does with its database in one commit: renew leases, write what finished, claim what may start. */
import type { Dispatch } from "../core/dispatch.ts";
import { type Move, moveAfter, type Policy } from "../core/lifecycle.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Clock, Entropy } from "../core/seams.ts";
import { type ClaimTerms, claimNext, endNext, recount, staleHolders } from "./claim.ts";
import { type CircuitChange, type CircuitTerms, closeAll, endHolds, noteFailure, noteSuccess } from "./gates.ts";
import { ownership } from "./ownership.ts";
import type { Handle } from "./statement.ts";
import { renew, settle, type Settled } from "./transitions.ts";
import { SCHEMA_VERSION } from "./version.ts";

/** A finished attempt on its way into the database. */
export interface Settlement {
  /** The row as it was claimed, with its lock token. */
  readonly claim: Dispatch;
  readonly outcome: Outcome;
  readonly policy: Policy;
}

/** A claim in hand that wants another lease. */
export interface Renewal {
  readonly seq: number;
  readonly lockToken: string;
  readonly leaseS: number;
}

export interface Exchange {
  readonly holder: string;
  readonly circuit: CircuitTerms;
  readonly settle: readonly Settlement[];
  readonly renew: readonly Renewal[];
  /** Null: claim nothing. */
  readonly claim:
    | (Omit<ClaimTerms, "now" | "dueBy" | "holder" | "alive" | "circuits"> & {
        /** Only rows due by then, epoch seconds; null: due now. */
        readonly dueBy: number | null;
        readonly atMost: number;
        /** Whether this holder is a process that still lives on this host. */
        readonly isAlive: (holder: string) => boolean;
      })
    | null;
}

export interface Exchanged {
  /** One for each settlement, in order. */
  readonly settled: readonly { readonly result: Settled; readonly move: Move; readonly circuit: CircuitChange }[];
  /** One for each renewal, in order: whether the claim is still ours. */
  readonly renewed: readonly boolean[];
  /** Rows moved: claimed (`delivering`), or ended (`expired`, `dead_letter`). */
  readonly taken: readonly Dispatch[];
  /** The schema has become newer than this binary: what was claimed is settled, nothing more is claimed. */
  readonly outdated: boolean;
}

export interface ExchangeSeams {
  readonly clock: Clock;
  readonly entropy: Entropy;
}

/** How many rows one transaction ends (expired, exhausted), so that it stays short. */
const ENDED_AT_ONCE = 256;

/** After so many milliseconds a transaction claims no more: where many rows are in the way, others come in between. */
const LONG_MS = 50;
/** Leases that run out while a transaction lasts are looked after too. */
const SOON_S = 5;

/** In one transaction of the caller's. Each part reads a fresh clock. */
export function exchange(db: Handle, terms: Exchange, seams: ExchangeSeams): Exchanged {
  const settled = terms.settle.map((settlement) => settleOne(db, settlement, terms, seams));
  const renewed = terms.renew.map(({ seq, lockToken, leaseS }) => renew(db, { seq, lockToken }, seams.clock.now() + leaseS));
  const owner = ownership(db);
  const outdated = owner.whose !== "ours" || owner.version > SCHEMA_VERSION;
  return { settled, renewed, taken: outdated || terms.claim === null ? [] : take(db, terms, terms.claim, seams), outdated };
}

function settleOne(
  db: Handle,
  { claim, outcome, policy }: Settlement,
  terms: Exchange,
  { clock, entropy }: ExchangeSeams,
): Exchanged["settled"][number] {
  const now = clock.now();
  const move = moveAfter(outcome, claim, policy, now, entropy.random());
  const held = { seq: claim.seq, attempt: claim.attempt, lockToken: claim.lock_token ?? "" };
  const result = settle(db, held, move, now, terms.holder);
  return { result, move, circuit: circuitAfter(db, claim.deliver_to, outcome, result, terms.circuit, now) };
}

/** A success counts also when the consumer was faster; a failure only while the claim was ours. */
function circuitAfter(db: Handle, deliverTo: string, outcome: Outcome, result: Settled, terms: CircuitTerms, now: number): CircuitChange {
  if (outcome.kind === "ok" && result !== "lost") return noteSuccess(db, deliverTo);
  if (outcome.kind === "failed" && result === "applied") return noteFailure(db, deliverTo, terms, now);
  return null;
}

function take(db: Handle, terms: Exchange, claim: NonNullable<Exchange["claim"]>, { clock, entropy }: ExchangeSeams): Dispatch[] {
  const { dueBy, atMost, isAlive, ...rest } = claim;
  const routed = rest.fallbackLeaseS !== null || [...rest.kinds.values()].some((leaseS) => leaseS !== null);
  const began = clock.now();
  endHolds(db, began);
  if (terms.circuit.failures === 0) closeAll(db);
  recount(db, began);
  const fixed = {
    ...rest,
    holder: terms.holder,
    circuits: terms.circuit.failures > 0,
    alive: staleHolders(db, began + SOON_S).filter(isAlive),
  };
  const fresh = (): ClaimTerms => {
    const now = clock.now();
    return { ...fixed, now, dueBy: dueBy ?? now };
  };
  const ended: Dispatch[] = [];
  while (ended.length < ENDED_AT_ONCE) {
    const row = endNext(db, fresh());
    if (row === null) break;
    ended.push(row);
  }
  const claimed: Dispatch[] = [];
  const wanted = routed ? atMost : 0;
  const startedMs = clock.monotonicMs();
  while (claimed.length < wanted && (claimed.length === 0 || clock.monotonicMs() - startedMs < LONG_MS)) {
    const row = claimNext(db, fresh(), entropy.token());
    if (row === null) break;
    claimed.push(row);
  }
  return [...ended, ...claimed];
}
