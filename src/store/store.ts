/**
 * The store as the rest of the program knows it: asynchronous, every method one transaction, no word of SQL. A second
 * engine can stand behind it. Inside, each method wraps synchronous functions into one immediate transaction.
 */
import type { AdminEvent, Answer, Dispatch, DispatchRef, Transition } from "../core/dispatch.ts";
import type { CheckedRequest } from "../core/request.ts";
import type { Clock, Entropy } from "../core/seams.ts";
import { enqueue } from "./enqueue.ts";
import { type Exchange, exchange, type Exchanged } from "./exchange.ts";
import { type Figures, figures } from "./figures.ts";
import { type OpenTerms, openDatabase } from "./open.ts";
import { cancel, type OperatorOutcome, purge, retry } from "./operator.ts";
import { audit, byRef, history, type Listed, list, nextMoment, type Page } from "./queries.ts";
import { type Handle, statement } from "./statement.ts";
import { ack, type AckOutcome, type Settled } from "./transitions.ts";
import { asTrouble } from "./trouble.ts";

export type { AckOutcome, Figures, Listed, OpenTerms, OperatorOutcome, Page, Settled };
export type { Exchange, Exchanged, Renewal, Settlement } from "./exchange.ts";
export type { CircuitChange, CircuitTerms } from "./gates.ts";
export type { Selection } from "./selection.ts";

export interface OperatorTerms {
  readonly actor: string;
  readonly dryRun: boolean;
}

export interface Store {
  /** Where it is, for messages. */
  readonly path: string;
  /** All or nothing; one answer for each request, in order. */
  enqueue(requests: readonly CheckedRequest[]): Promise<readonly Answer[]>;
  ack(ref: DispatchRef, token: string): Promise<AckOutcome>;
  find(
    ref: DispatchRef,
  ): Promise<{ readonly row: Dispatch; readonly history: readonly Transition[]; readonly audit: readonly AdminEvent[] } | null>;
  list(page: Page): Promise<readonly Listed[]>;
  /** `dueInS`: seconds from now; `expiresInS`: the new expiry, seconds after it is due, or null to keep the old one. */
  retry(ref: DispatchRef, terms: OperatorTerms & { readonly dueInS: number; readonly expiresInS: number | null }): Promise<OperatorOutcome>;
  cancel(ref: DispatchRef, terms: OperatorTerms): Promise<OperatorOutcome>;
  purge(ref: DispatchRef, terms: OperatorTerms & { readonly force: boolean }): Promise<OperatorOutcome>;
  figures(): Promise<Figures>;
  /** Settles finished attempts and claims the next ones, in one commit. */
  exchange(terms: Exchange): Promise<Exchanged>;
  /** The earliest due time or lease end still ahead, epoch seconds. */
  nextMoment(): Promise<number | null>;
  /** Whether another connection has committed since this was last asked; true the first time. */
  changed(): Promise<boolean>;
  close(): Promise<void>;
}

export interface StoreSeams {
  readonly clock: Clock;
  readonly entropy: Entropy;
}

/** Opens, or makes, a database and wraps it. @throws OutboxError */
export async function openStore(terms: OpenTerms, seams: StoreSeams): Promise<Store> {
  return createStore(await openDatabase(terms), terms.path, seams);
}

/** The store over a handle that is open, ours and up to date. */
export function createStore(db: Handle, path: string, { clock, entropy }: StoreSeams): Store {
  let purged = false;
  let dataVersion: number | null = null;
  const transact = async <T>(body: () => T): Promise<T> => {
    try {
      return db.transaction(body).immediate();
    } catch (error) {
      throw asTrouble(error, path);
    }
  };
  const read = async <T>(body: () => T): Promise<T> => {
    try {
      return db.transaction(body).deferred();
    } catch (error) {
      throw asTrouble(error, path);
    }
  };
  const operation = (terms: OperatorTerms): { now: number; actor: string; dryRun: boolean } => ({ ...terms, now: clock.now() });
  return {
    path,
    enqueue: (requests) => transact(() => requests.map((request) => enqueue(db, request, clock.now(), entropy))),
    ack: (ref, token) => transact(() => ack(db, ref, token, clock.now())),
    find: (ref) =>
      read(() => {
        const row = byRef(db, ref);
        return row === null ? null : { row, history: history(db, row.id), audit: audit(db, row.id) };
      }),
    list: (page) => read(() => list(db, page)),
    retry: (ref, terms) =>
      transact(() => {
        const base = operation(terms);
        const dueAt = base.now + terms.dueInS;
        return retry(db, ref, { ...base, dueAt, expiresAt: terms.expiresInS === null ? null : dueAt + terms.expiresInS });
      }),
    cancel: (ref, terms) => transact(() => cancel(db, ref, operation(terms))),
    purge: (ref, terms) => {
      purged ||= !terms.dryRun;
      return transact(() => purge(db, ref, { ...operation(terms), force: terms.force }));
    },
    figures: () => read(() => figures(db, clock.now())),
    exchange: (terms) => transact(() => exchange(db, terms, { clock, entropy })),
    changed: () =>
      read(() => {
        const now = statement<{ data_version: number }>(db, `PRAGMA data_version`).get({})?.data_version ?? null;
        const changed = now !== dataVersion;
        dataVersion = now;
        return changed;
      }),
    nextMoment: () => read(() => nextMoment(db, clock.now())),
    close: async () => {
      // What was purged is overwritten in the file; the log still holds the old pages until it is emptied.
      try {
        if (purged) db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch (error) {
        throw asTrouble(error, path);
      } finally {
        db.close();
      }
    },
  };
}
