/** The part of the store that hands in. By itself it is all that an enqueue loads. */
import type { Answer } from "../core/dispatch.ts";
import type { CheckedRequest } from "../core/request.ts";
import type { Clock, Entropy } from "../core/seams.ts";
import { enqueue } from "./enqueue.ts";
import { troubleOf } from "./failed.ts";
import { openDatabase, type OpenTerms } from "./open.ts";
import type { Handle } from "./statement.ts";
import { immediately } from "./transaction.ts";

/** What came of requests that all had to be new. */
export type AllNew =
  | { readonly outcome: "created"; readonly answers: readonly Answer[] }
  /** The first that is known: its place among the requests, and the row that has its key, which may be of a request before it. */
  | { readonly outcome: "known"; readonly at: number; readonly answer: Answer };

export interface Entry {
  /** All or nothing; one answer for each request, in order. */
  enqueue(requests: readonly CheckedRequest[]): Promise<readonly Answer[]>;
  /** All of them, if none is known already; else nothing is stored. */
  enqueueNew(requests: readonly CheckedRequest[]): Promise<AllNew>;
  close(): Promise<void>;
}

export interface StoreSeams {
  readonly clock: Clock;
  readonly entropy: Entropy;
}

/** Opens, or makes, a database to hand messages in. @throws OutboxError */
export async function openEntry(terms: OpenTerms, seams: StoreSeams): Promise<Entry> {
  return createEntry(await openDatabase(terms), terms.path, seams);
}

/** Thrown to roll a transaction back: only a body that throws is taken back. */
const KNOWN = new Error("one of the requests is known already");

/** The same over a handle that is open, ours and up to date. */
export function createEntry(db: Handle, path: string, { clock, entropy }: StoreSeams): Entry {
  const transact = async <T>(body: () => T): Promise<T> => {
    try {
      return immediately(db, body);
    } catch (error) {
      throw await troubleOf(error, path);
    }
  };
  return {
    enqueue: (requests) => transact(() => requests.map((request) => enqueue(db, request, clock.now(), entropy))),
    enqueueNew: async (requests) => {
      const answers: Answer[] = [];
      try {
        await transact(() => {
          for (const request of requests) {
            answers.push(enqueue(db, request, clock.now(), entropy));
            if (answers.at(-1)?.outcome === "duplicate") throw KNOWN;
          }
        });
        return { outcome: "created", answers };
      } catch (error) {
        const answer = answers.at(-1);
        if (error !== KNOWN || answer === undefined) throw error;
        return { outcome: "known", at: answers.length - 1, answer };
      }
    },
    close: async () => db.close(),
  };
}
