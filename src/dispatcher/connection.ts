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

export function connection(open: () => Promise<Store>): Connection {
  let store: Store | null = null;
  const close = async (): Promise<void> => {
    const old = store;
    store = null;
    await old?.close();
  };
  return {
    async use(work) {
      store ??= await open();
      try {
        return await work(store);
      } catch (error) {
        // A lock leaves the handle sound; everything else is not worth finding out.
        if (!(error instanceof OutboxError && error.kind === "busy")) await close().catch(() => {});
        throw error;
      }
    },
    isOpen: () => store !== null,
    close,
  };
}
