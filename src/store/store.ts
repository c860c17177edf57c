/**
 * The store as the rest of the program knows it: asynchronous, every method one transaction, no word of SQL. A second
 * engine can stand behind it. Inside, each method wraps synchronous functions into one immediate transaction.
 */
import type { AdminEvent, Dispatch, DispatchRef, Transition } from "../core/dispatch.ts";
import type { Situation } from "../core/explain.ts";
import type { CheckedRequest } from "../core/request.ts";
import { patienceEnds, staleHolders } from "./claim.ts";
import { createEntry, type Entry, type StoreSeams } from "./entry.ts";
import { type Exchange, exchange, type Exchanged } from "./exchange.ts";
import { troubleOf } from "./failed.ts";
import { type Figures, figures } from "./figures.ts";
import { type Forecast, forecasts, type ForecastWish } from "./forecast.ts";
import { type Circuit, type Hold, hold, holds, type HoldScope, openCircuits, resume } from "./gates.ts";
import { type Many, many, type ManyTerms } from "./by_filter.ts";
import { emptyLog, trimLog } from "./log.ts";
import { type OpenTerms, openDatabase } from "./open.ts";
import { cancel, type OperatorOutcome, purge, retry } from "./operator.ts";
import { audit, byRef, history, type Listed, list, nextMoment, type Page } from "./queries.ts";
import { type RetentionTerms, sweep, type Swept, type SweepProgress } from "./retention.ts";
import { enqueueClaimed, type Inline } from "./inline.ts";
import { situated } from "./situation.ts";
import { type Handle, statement } from "./statement.ts";
import { note, over, standing } from "./told.ts";
import { atOneMoment, immediately } from "./transaction.ts";
import { ack, type AckOutcome, type Settled } from "./transitions.ts";

export type {
  AckOutcome,
  Circuit,
  Figures,
  Hold,
  HoldScope,
  Inline,
  Listed,
  OpenTerms,
  OperatorOutcome,
  Page,
  RetentionTerms,
  Settled,
  Swept,
};
export { CHANGEABLE, countRefused, type Tally } from "./changes.ts";
export type { Many, ManyTerms, Step } from "./by_filter.ts";
export type { Forecast, ForecastPage, ForecastWish, Foreseen } from "./forecast.ts";
export type { Refusal } from "./claim.ts";
export type { Exchange, Exchanged, Renewal, Settlement } from "./exchange.ts";
export type { CircuitChange, CircuitTerms } from "./gates.ts";
export type { Selection } from "./selection.ts";

export interface OperatorTerms {
  readonly actor: string;
  readonly dryRun: boolean;
}

/** Everything that is known of one dispatch. */
export interface Found {
  readonly row: Dispatch & Situation;
  /** The hold that stops it. */
  readonly hold: Hold | null;
  readonly history: readonly Transition[];
  readonly audit: readonly AdminEvent[];
}

/** How one row is claimed at its entry. */
export interface InlineTerms {
  /** Host, pid and start time of this process. */
  readonly holder: string;
  /** Seconds. */
  readonly leaseS: number;
  /** Live claims for one destination, over all runners. */
  readonly perDestination: number;
  /** Whether circuits count. */
  readonly circuits: boolean;
}

/** What a sleeping runner needs to know of stale rows of living processes, which wait one lease more. */
export interface Patience {
  readonly fallbackLeaseS: number | null;
  readonly kinds: ReadonlyMap<string, number | null>;
  readonly isAlive: (holder: string) => boolean;
}

export interface Store extends Entry {
  /** Where it is, for messages. */
  readonly path: string;
  /** Enters one dispatch and claims it, or says which guard was in its way: then it stays pending. */
  enqueueClaimed(request: CheckedRequest, terms: InlineTerms): Promise<Inline>;
  ack(ref: DispatchRef, token: string): Promise<AckOutcome>;
  find(ref: DispatchRef): Promise<Found | null>;
  list(page: Page): Promise<readonly (Listed & Situation)[]>;
  /** `dueInS`: seconds from now; `expiresInS`: the new expiry, seconds from now, or null to keep the old one. */
  retry(ref: DispatchRef, terms: OperatorTerms & { readonly dueInS: number; readonly expiresInS: number | null }): Promise<OperatorOutcome>;
  cancel(ref: DispatchRef, terms: OperatorTerms): Promise<OperatorOutcome>;
  purge(ref: DispatchRef, terms: OperatorTerms & { readonly force: boolean }): Promise<OperatorOutcome>;
  /** The oldest first, and only what was there at its start. */
  changeMany(terms: ManyTerms): Many;
  figures(): Promise<Figures>;
  /** Settles finished attempts and claims the next ones, in one commit. */
  exchange(terms: Exchange): Promise<Exchanged>;
  /** What a run that drains would work through now. Reads only. */
  forecast(wish: ForecastWish): Forecast;
  /**
   * When something will happen next by itself, epoch seconds; null: nothing is ahead.
   * @param terms `since`: what came due after it counts as ahead although it is over, epoch seconds; left out, it is now
   */
  nextMoment(terms?: { readonly since?: number; readonly patience?: Patience }): Promise<number | null>;
  /** `forS`: how long it lasts; null: until somebody resumes. A hold that names the same is changed. */
  hold(scope: HoldScope, terms: { readonly actor: string; readonly forS: number | null; readonly note: string | null }): Promise<Hold>;
  /** @returns how many holds ended: of a scope 0 or 1 */
  resume(scope: HoldScope | "all", terms: { readonly actor: string }): Promise<number>;
  /** Oldest first. */
  holds(): Promise<readonly Hold[]>;
  /** Open circuits, those past their cooldown included: those that have been open longest first, `atMost` so many. */
  circuits(atMost?: number): Promise<readonly Circuit[]>;
  /**
   * One batch of what is older than its window. Call it while it says that there is more: that is one sweep, in one audit row. Before
   * the first one a log is emptied that readers let grow, or that holds what was deleted.
   * @param isAlive whether this holder of an inbox's entry still lives on this host
   */
  sweep(windows: RetentionTerms, isAlive: (holder: string) => boolean): Promise<Swept>;
  /** Whether to tell what needs a person: over all runners when it begins or changes, and hourly. */
  note(topic: string, text: string): Promise<"tell" | "quiet">;
  /** What needed a person is over. @returns whether it was standing: then its end is told */
  over(topic: string): Promise<boolean>;
  /** The topics that stand and begin so. */
  standing(prefix: string): Promise<readonly string[]>;
  /** Whether another connection has committed since this was last asked; true the first time. */
  changed(): Promise<boolean>;
  close(): Promise<void>;
}

/** How long a batch of a sweep may keep others from writing, in milliseconds. */
const SWEEP_MS = 20;

/** Opens, or makes, a database and wraps it. @throws OutboxError */
export async function openStore(terms: OpenTerms, seams: StoreSeams): Promise<Store> {
  return createStore(await openDatabase(terms), terms.path, seams);
}

/** The store over a handle that is open, ours and up to date. */
export function createStore(db: Handle, path: string, { clock, entropy }: StoreSeams): Store {
  let purged = false;
  let swept: SweepProgress | null = null;
  let dataVersion: number | null = null;
  const transact = async <T>(body: () => T): Promise<T> => {
    try {
      return immediately(db, body);
    } catch (error) {
      throw await troubleOf(error, path);
    }
  };
  const read = async <T>(body: () => T): Promise<T> => {
    try {
      return atOneMoment(db, body);
    } catch (error) {
      throw await troubleOf(error, path);
    }
  };
  const untransacted = async <T>(body: () => T): Promise<T> => {
    try {
      return body();
    } catch (error) {
      throw await troubleOf(error, path);
    }
  };
  /** What was deleted must not stand in the log for as long as this store is open. */
  const tidyLog = (): void => {
    if (purged) purged = !emptyLog(db);
    else trimLog(db);
  };
  const operation = (terms: OperatorTerms): { now: number; actor: string; dryRun: boolean } => ({ ...terms, now: clock.now() });
  return {
    ...createEntry(db, path, { clock, entropy }),
    path,
    enqueueClaimed: (request, { leaseS, ...terms }) =>
      transact(() => enqueueClaimed(db, request, { ...terms, now: clock.now(), fallbackLeaseS: leaseS, kinds: new Map() }, entropy)),
    ack: (ref, token) => transact(() => ack(db, ref, token, clock.now())),
    find: (ref) =>
      read(() => {
        const row = byRef(db, ref);
        const [found] = row === null ? [] : situated(db, [row], clock.now());
        if (found === undefined) return null;
        const hold = found.held_by === null ? null : (holds(db).find(({ id }) => id === found.held_by) ?? null);
        return { row: found, hold, history: history(db, found.id), audit: audit(db, found.id) };
      }),
    list: (page) => read(() => situated(db, list(db, page), clock.now())),
    retry: (ref, terms) =>
      transact(() => {
        const base = operation(terms);
        const expiresAt = terms.expiresInS === null ? null : base.now + terms.expiresInS;
        return retry(db, ref, { ...base, dueAt: base.now + terms.dueInS, expiresAt });
      }),
    cancel: (ref, terms) => transact(() => cancel(db, ref, operation(terms))),
    purge: (ref, terms) => {
      purged ||= !terms.dryRun;
      return transact(() => purge(db, ref, { ...operation(terms), force: terms.force }));
    },
    changeMany: (terms) => {
      purged ||= terms.change.verb === "purge" && !terms.dryRun;
      return many(db, terms, { clock, read, transact });
    },
    figures: () => read(() => figures(db, clock.now())),
    exchange: (terms) => transact(() => exchange(db, terms, { clock, entropy })),
    forecast: (wish) => forecasts(db, wish, { now: () => clock.now(), read }),
    changed: () =>
      read(() => {
        const now = statement<{ data_version: number }>(db, `PRAGMA data_version`).get({})?.data_version ?? null;
        const changed = now !== dataVersion;
        dataVersion = now;
        return changed;
      }),
    nextMoment: ({ since, patience } = {}) =>
      read(() => {
        const now = clock.now();
        // A clock that was set back since then has all of that ahead again.
        const after = Math.min(since ?? now, now);
        const first = nextMoment(db, after);
        const alive = patience === undefined ? [] : staleHolders(db, now).filter(patience.isAlive);
        const waits = patience === undefined || alive.length === 0 ? null : patienceEnds(db, { ...patience, now, alive, after });
        return first === null || waits === null ? (first ?? waits) : Math.min(first, waits);
      }),
    hold: (scope, { actor, forS, note: text }) =>
      transact(() => {
        const now = clock.now();
        return hold(db, scope, { now, actor, note: text, endsAt: forS === null ? null : now + forS });
      }),
    resume: (scope, { actor }) => transact(() => resume(db, scope, { now: clock.now(), actor })),
    holds: () => read(() => holds(db)),
    circuits: (atMost) => read(() => openCircuits(db, atMost)),
    sweep: async (windows, isAlive) => {
      const began = clock.monotonicMs();
      const isLate = (): boolean => clock.monotonicMs() - began >= SWEEP_MS;
      const terms = { windows, now: clock.now(), isLate, isAlive, progress: swept };
      // First, so that what goes wrong with it takes no count along.
      if (swept === null) await untransacted(tidyLog);
      const { progress, ...batch } = await transact(() => sweep(db, terms));
      swept = batch.more ? progress : null;
      purged ||= batch.removed > 0;
      return batch;
    },
    note: (topic, text) => transact(() => note(db, topic, text, clock.now())),
    over: (topic) => transact(() => over(db, topic)),
    standing: (prefix) => read(() => standing(db, prefix)),
    close: async () => {
      // What was purged is overwritten in the file; the log still holds the old pages until it is emptied.
      try {
        if (purged) emptyLog(db);
      } catch (error) {
        throw await troubleOf(error, path);
      } finally {
        db.close();
      }
    },
  };
}
