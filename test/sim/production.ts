/** The production code that a simulated world runs: that of this tree, or of a copy in which a fault is planted. */
import { join } from "node:path";

const SRC = join(import.meta.dir, "../../src");

/** @param src directory of the sources; every module is loaded from there */
export async function production(src = SRC) {
  const load = <T>(path: string): Promise<T> => import(join(src, path)) as Promise<T>;
  const [run, inline, store, migrate, request, claim, deliver, inbox] = await Promise.all([
    load<typeof import("../../src/dispatcher/run.ts")>("dispatcher/run.ts"),
    load<typeof import("../../src/dispatcher/inline.ts")>("dispatcher/inline.ts"),
    load<typeof import("../../src/store/store.ts")>("store/store.ts"),
    load<typeof import("../../src/store/migrate.ts")>("store/migrate.ts"),
    load<typeof import("../../src/core/request.ts")>("core/request.ts"),
    load<typeof import("../../src/library/claim.ts")>("library/claim.ts"),
    load<typeof import("../../src/library/deliver.ts")>("library/deliver.ts"),
    load<typeof import("../../src/store/inbox.ts")>("store/inbox.ts"),
    // A store loads it when something fails. That takes turns of the event loop, and in them virtual time would go on.
    load<typeof import("../../src/store/trouble.ts")>("store/trouble.ts"),
  ]);
  const { runOnce, runForever } = run;
  const { runClaim } = inline;
  const { createStore } = store;
  const { install } = migrate;
  const { checkRequest } = request;
  const { enterClaimed } = claim;
  const { deliverAt } = deliver;
  const { begin, complete, abandon } = inbox;
  return {
    runOnce,
    runForever,
    runClaim,
    createStore,
    install,
    checkRequest,
    enterClaimed,
    deliverAt,
    inbox: { begin, complete, abandon },
  } as const;
}

export type Production = Awaited<ReturnType<typeof production>>;
