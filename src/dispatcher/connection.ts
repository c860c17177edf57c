/** A database that a runner comes back to: opened when needed, closed for good after an I/O error, opened anew. */
import { OutboxError } from "../core/errors.ts";
import type { Store } from "../store/store.ts";

export interface Connection {
  /** Runs one store method. After an I/O error the handle is closed, never reused. @throws OutboxError */
  use<T>(work: (store: Store) => Promise<T>): Promise<T>;
  /** Whether it is open at the moment. */
  isOpen(): boolean;
  close(): Promise<void>;
}

/**
 * A lock leaves the handle sound. But one that lasts may be our own, kept by an unlocking that failed, and the system takes that
 * back only when the file is closed.
 */
const LOCKED_IN_A_ROW = 10;

export function connection(open: () => Promise<Store>): Connection {
  let store: Store | null = null;
  let locked = 0;
  const close = async (): Promise<void> => {
    const old = store;
    store = null;
    locked = 0;
    await old?.close();
  };
  return {
    async use(work) {
      store ??= await open();
      try {
        const answer = await work(store);
        locked = 0;
        return answer;
      } catch (error) {
        locked += 1;
        // Whether a handle is sound after anything else is not worth finding out.
        const sound = error instanceof OutboxError && error.kind === "busy" && locked < LOCKED_IN_A_ROW;
        if (!sound) await close().catch(() => {});
        throw error;
      }
    },
    isOpen: () => store !== null,
    close,
  };
}
