/**
 * A program sends what it entered claimed, with a function of its own (ADR-003, dual dispatch). The lease is renewed while the
 * function runs; what it comes to is settled under the token, so whoever lost the lease changes nothing.
 */
import type { Database } from "bun:sqlite";
import { DEFAULT_BACKOFF } from "../core/backoff.ts";
import type { Dispatch } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import { type Move, moveAfter } from "../core/lifecycle.ts";
import type { Outcome, Report } from "../core/outcome.ts";
import { noteSuccess } from "../store/gates.ts";
import { byRef } from "../store/queries.ts";
import { renew, settle } from "../store/transitions.ts";
import type { Claim } from "./claim.ts";
import { onOurs, reading } from "./handle.ts";
import { bad, checkOptions, nameOf, signal } from "./input.ts";
import { HERE, type Place } from "./place.ts";

export interface HandlerInput {
  /** The row as it is delivered; `payload` is the envelope. */
  readonly dispatch: Dispatch;
  /** Aborts when the lease is lost, because somebody else may send it from then on, and when the caller's own signal does. */
  readonly signal: AbortSignal;
}

/** Does the work. Returning is success; throwing is a failed attempt. */
export type Handler = (input: HandlerInput) => unknown;

export interface DeliverOptions {
  /** Handed on to the handler. Aborted before it starts: it does not start, and the attempt is given back. */
  readonly signal?: AbortSignal | undefined;
}

/** What happened. */
export type Delivery =
  /** Nothing was run: the claim was rolled back, is not committed yet, or its lease ended and somebody else has it. */
  | { readonly outcome: "not_ours" }
  /** Nothing was run: the caller's signal had aborted. It is due at once, for a runner. */
  | { readonly outcome: "released" }
  /** `pending`: sent, and it waits for its acknowledgement. */
  | { readonly outcome: "delivered"; readonly status: "delivered" | "pending" }
  /** The consumer acknowledged it while the handler ran. */
  | { readonly outcome: "acked" }
  /** `pending`: due at once, for a runner; `dead_letter`: it was the last attempt. `error`: what the handler threw. */
  | { readonly outcome: "failed"; readonly status: "pending" | "dead_letter"; readonly error: unknown }
  /** The lease was lost while the handler ran: what it came to changes nothing. It may still run, if it minds no signal. */
  | { readonly outcome: "lost" };

/**
 * Runs the program's own function for a claim that is committed. The claim's lease is renewed first, and nothing is run unless that
 * works: so never after a rollback, before the commit, or once a runner took over. As long as the handler runs the lease is renewed.
 * @throws OutboxError `data` for no claim or no function; `usage` within a transaction (nothing was run); `busy`, `io` when the database does not answer until the lease
 * is over (after the handler: it will be sent again)
 * @example await deliver(db, claim, async ({ dispatch, signal }) => { await post(dispatch.payload, signal); })
 */
export function deliver(db: Database, claim: Claim, handler: Handler, options: DeliverOptions = {}): Promise<Delivery> {
  return deliverAt(HERE, db, claim, handler, options);
}

/** The same, in a process that is told. @internal */
export async function deliverAt(
  place: Place,
  db: Database,
  claim: Claim,
  handler: Handler,
  options: DeliverOptions = {},
): Promise<Delivery> {
  if (typeof claim !== "object" || claim === null)
    throw bad(`the claim is ${nameOf(claim)}`, "deliver only what enqueue answered with a claim; refusal says why there is none");
  if (typeof handler !== "function") throw bad(`the handler is ${nameOf(handler)}, not a function`);
  checkOptions("the options of deliver", options, { signal });
  const { signal: asked } = options;
  if (db.inTransaction)
    throw new OutboxError("usage", "deliver stands in a transaction, so what it delivers is not committed", "call it after the commit");
  const hold = { place, db, claim, endsAtMs: place.clock.monotonicMs() + claim.lease_seconds * 1_000 };
  const dispatch = await insist(hold, () => begin(hold));
  if (dispatch === null) return { outcome: "not_ours" };
  if (asked?.aborted === true) {
    const outcome = { kind: "released", error: "the program stopped before its handler started", exhausted: false } as const;
    return (await insist(hold, () => write(hold, outcome))) === null ? { outcome: "not_ours" } : { outcome: "released" };
  }
  const abort = new AbortController();
  const handOn = (): void => abort.abort(asked?.reason);
  asked?.addEventListener("abort", handOn);
  const ended = new AbortController();
  try {
    const work = attempt(place, handler, { dispatch, signal: abort.signal });
    const first = await Promise.race([work, keepLease(hold, ended.signal)]);
    if (first === "lost") {
      abort.abort(new OutboxError("no", `the lease of dispatch ${dispatch.id} was lost`, "stop: somebody else may send it"));
      return { outcome: "lost" };
    }
    ended.abort();
    return ending(await insist(hold, () => write(hold, first.outcome)), first);
  } finally {
    ended.abort();
    asked?.removeEventListener("abort", handOn);
  }
}

interface Hold {
  readonly place: Place;
  readonly db: Database;
  readonly claim: Claim;
  /** When the lease ends, on the monotonic clock. */
  endsAtMs: number;
}

interface Attempt {
  readonly outcome: Outcome;
  readonly error: unknown;
}

/** Never rejects. */
async function attempt({ clock }: Place, handler: Handler, input: HandlerInput): Promise<Attempt> {
  const beganMs = clock.monotonicMs();
  // No process was seen: neither exit code nor output.
  const report = (): Report => ({
    exit: null,
    signal: null,
    durationMs: Math.round(clock.monotonicMs() - beganMs),
    head: "",
    tail: "",
  });
  try {
    await handler(input);
    return { outcome: { kind: "ok", report: report() }, error: null };
  } catch (error) {
    const text = (error instanceof Error ? error.message : String(error)).replaceAll("\0", "").toWellFormed();
    // Whoever failed here is done with it: a runner may try at once.
    return { outcome: { kind: "failed", report: report(), error: text || "it failed without a word", retryAfterMs: 0 }, error };
  }
}

/** Claims whose handler runs or ran: a second call must not run it beside the first. */
const begun = new WeakSet<Claim>();

/** The row, its lease renewed; null when this claim does not have it. Looks first: a row that is not committed costs no lock. */
function begin(hold: Hold): Dispatch | null {
  const { db, claim } = hold;
  const row = reading(db, () => byRef(db, { seq: claim.dispatch.seq }));
  if (row === null || row.status !== "delivering" || row.lock_token !== claim.dispatch.lock_token) return null;
  if (begun.has(claim) || !renewed(hold)) return null;
  begun.add(claim);
  return row;
}

function renewed(hold: Hold): boolean {
  const { db, claim, place } = hold;
  const { seq, lock_token: lockToken } = claim.dispatch;
  const kept = onOurs(db, () => renew(db, { seq, lockToken: lockToken ?? "" }, place.clock.now() + claim.lease_seconds));
  if (kept) hold.endsAtMs = place.clock.monotonicMs() + claim.lease_seconds * 1_000;
  return kept;
}

/** Renews every third of the lease until `ended`. Resolves only when the lease is lost, or could not be renewed until its end. */
async function keepLease(hold: Hold, ended: AbortSignal): Promise<"lost"> {
  for (;;) {
    await hold.place.clock.sleep((hold.claim.lease_seconds * 1_000) / 3, ended);
    if (ended.aborted) return new Promise(() => {});
    try {
      if (await insist(hold, () => renewed(hold), ended)) continue;
      // Acknowledged meanwhile: it has arrived, and the handler may end in peace.
      const { db, claim } = hold;
      if (reading(db, () => byRef(db, { seq: claim.dispatch.seq }))?.status !== "acked") return "lost";
      return new Promise(() => {});
    } catch {
      return "lost"; // the database does not answer, and the lease is over
    }
  }
}

/** Longest pause between two tries, in milliseconds. */
const PAUSE_MS = 20;

/**
 * Writes something as soon as it can be written: no other process holds the lock and the program has no transaction open, in which
 * it could be rolled back. Tries until the lease is over.
 */
async function insist<T>(hold: Hold, work: () => T, ended?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      if (hold.db.inTransaction)
        throw new OutboxError("busy", "a transaction is open on the handle of a delivery", "commit it, or use a handle of its own");
      return work();
    } catch (error) {
      const isOver = hold.place.clock.monotonicMs() >= hold.endsAtMs || ended?.aborted === true;
      if (isOver || !(error instanceof OutboxError) || error.kind !== "busy") throw error;
    }
    await hold.place.clock.sleep(PAUSE_MS, ended);
  }
}

/** Settles under the token. Null: it is no longer ours. */
function write({ place, db, claim: { dispatch } }: Hold, outcome: Outcome): { readonly move: Move; readonly acked: boolean } | null {
  return onOurs(db, () => {
    const now = place.clock.now();
    const policy = { backoff: DEFAULT_BACKOFF, onConfigError: "wait" } as const;
    const move = inWords(moveAfter(outcome, dispatch, policy, now, place.entropy.random()));
    const held = { seq: dispatch.seq, attempt: dispatch.attempt, lockToken: dispatch.lock_token ?? "" };
    const result = settle(db, held, move, now, place.holder());
    // A failure of the program's own function says nothing of the command that a runner has for this destination.
    if (outcome.kind === "ok" && result !== "lost") noteSuccess(db, dispatch.deliver_to);
    return result === "lost" ? null : { move, acked: result === "acked" };
  });
}

/** The history says who did it. */
function inWords(move: Move): Move {
  if (move.reason === "dispatch.pending.retry_backoff")
    return { ...move, summary: `attempt ${move.attempt} failed in the program that entered it; a runner may try at once` };
  if (move.reason === "dispatch.delivered.transport_ok")
    return { ...move, summary: move.summary.replace("the command took it", "the program that entered it delivered it") };
  return move;
}

function ending(written: ReturnType<typeof write>, { outcome, error }: Attempt): Delivery {
  if (written === null) return { outcome: "lost" };
  if (written.acked) return { outcome: "acked" };
  const { to } = written.move;
  if (outcome.kind === "ok") return { outcome: "delivered", status: to === "delivered" ? to : "pending" };
  return { outcome: "failed", status: to === "dead_letter" ? to : "pending", error };
}
