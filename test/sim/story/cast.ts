/** Who takes part in a story: runners, senders, programs, operators, consumers. */
import type { Dispatch } from "../../../src/core/dispatch.ts";
import type { CheckedRequest } from "../../../src/core/request.ts";
import type { Store } from "../../../src/store/store.ts";
import { newCommand, nextAct } from "./commands.ts";
import type { Process } from "./process.ts";
import { LEASE_S, PER_DESTINATION, TIMEOUT_MS } from "./terms.ts";
import { isOfTheMachine, type Town } from "./town.ts";
import type { Letter, Mishap } from "./words.ts";

/** A process that lives for a while, and when it is over: by itself, or killed. */
export interface Living {
  readonly process: Process;
  readonly over: Promise<unknown>;
}

function living({ judge }: Town, process: Process, work: Promise<unknown>): Living {
  const toItsEnd = async (): Promise<void> => {
    try {
      await work;
      judge.ended(process);
      process.end();
    } catch (error) {
      judge.accuse(`${process.name} failed: ${String(error)}`);
    }
  };
  return { process, over: Promise.race([toItsEnd(), process.killed]) };
}

/** Who gets no answer says so and ends. */
function excused(error: unknown): void {
  if (!isOfTheMachine(error)) throw error;
}

const spec = (town: Town, process: Process) => ({
  name: "default",
  path: ":memory:",
  open: (): Promise<Store> => process.cross(town.store(process)),
});

export function runner(town: Town, mode: "once" | "forever"): Living {
  const process = town.spawn();
  const { processes } = town.judge.state;
  const run = mode === "once" ? town.production.runOnce : town.production.runForever;
  if (mode === "forever") town.judge.state.runners.set(process, town.clock.monotonicMs());
  const work = run({
    clock: process.clock,
    transport: town.transport(process),
    sources: [spec(town, process)],
    plan: town.plan,
    tell: town.tell,
    holder: process.name,
    isAlive: (holder) => processes.get(holder)?.isAlive() ?? false,
    watch: (_, look) => {
      town.watch(process, look);
      return { opened: () => {}, check: () => "same", close: () => {} };
    },
    stop: process.stop.signal,
    now: process.now.signal,
  });
  return living(town, process, work);
}

export function requestOf(town: Town, letter: Letter): CheckedRequest {
  const { kind, to, max, key, dedup, ack, delayS, expiresS } = letter;
  const now = town.clock.now();
  const due = now + (delayS ?? 0);
  return town.production.checkRequest({
    kind,
    // What its commands will do, for the simulated transport.
    body: { acts: letter.acts ?? [] },
    deliver_to: to,
    max_attempts: max,
    ordering_key: key,
    dedup_key: dedup,
    ack_required: ack,
    ...(delayS === undefined ? {} : { not_before: due }),
    // One that is late already has no delay.
    ...(expiresS === undefined ? {} : { expires_at: (expiresS <= 0 ? now : due) + expiresS }),
    ...(expiresS !== undefined && expiresS <= 0 ? { not_before: undefined } : {}),
  });
}

/** `outbox enqueue`; asked again where no answer came. */
export async function enqueue(town: Town, letter: Letter, mishap: Mishap): Promise<void> {
  const process = town.spawn();
  process.mishaps.push(mishap);
  const store = town.store(process);
  const request = requestOf(town, letter);
  const [answer] = await store.enqueue([request]).catch(() => store.enqueue([request]));
  const row = [...town.judge.state.rows.values()].find(({ id }) => id === answer?.id);
  if (answer?.outcome === "created" && row === undefined) town.judge.accuse(`enqueue answered with row ${answer.seq}, which is not there`);
  if (answer?.outcome === "duplicate" && row !== undefined && row.dedup_key !== request.dedup_key)
    town.judge.accuse(`enqueue answered that row ${row.seq} has its key`);
  process.end();
}

/** `outbox enqueue --now`: entered claimed, its command run by the process that entered it. */
export function now(town: Town, letter: Letter): Living {
  const process = town.spawn();
  const work = async (): Promise<void> => {
    const store = town.store(process);
    const request = requestOf(town, letter);
    const { routes } = town.plan();
    const fault = routes.get(letter.kind)?.fault();
    if (fault !== null) return void (await store.enqueue([request]));
    const terms = { holder: process.name, leaseS: LEASE_S, perDestination: PER_DESTINATION, circuits: true };
    const { claim } = await store.enqueueClaimed(request, terms);
    if (claim === null) return;
    const seams = { clock: process.clock, transport: town.transport(process), source: spec(town, process), plan: town.plan() };
    const signals = { stop: process.stop.signal, now: process.now.signal };
    await town.production.runClaim({ ...seams, ...signals, tell: town.tell, holder: process.name }, claim);
  };
  return living(town, process, work().catch(excused));
}

const ROLLBACK = new Error("the program rolls back");

/** A program with the library: enters a message claimed, in a transaction of its own, and delivers it by a function. */
export function program(town: Town, letter: Letter, leaseS: number, rollback: boolean): Living {
  const process = town.spawn(true);
  const { production, entropy, clock, judge } = town;
  const db = town.handle(process);
  const place = { clock: process.clock, entropy, holder: () => process.name };
  const work = async (): Promise<void> => {
    await process.cross(undefined);
    let claim: ReturnType<typeof production.enterClaimed>["claim"] = null;
    try {
      db.transaction(() => {
        const options = { claim: true, lease_seconds: leaseS, per_destination: PER_DESTINATION } as const;
        claim = production.enterClaimed(db, requestOf(town, letter), options, place).claim;
        if (rollback) throw ROLLBACK;
      }).immediate();
    } catch (error) {
      // A transaction of the program's own fails in SQLite's words.
      if (error !== ROLLBACK && !(error instanceof Error && error.name === "SQLiteError")) throw error;
    }
    if (claim === null) return;
    await process.cross(undefined);
    await production.deliverAt(place, db, claim, ({ dispatch, signal }) => handle(dispatch, signal));
  };
  const handle = async ({ seq, lock_token, payload }: Dispatch, signal: AbortSignal): Promise<void> => {
    if (rollback) judge.accuse("a program ran its function although it had rolled back");
    const act = nextAct(town.stage, seq, payload);
    const command = newCommand(process, seq, lock_token ?? "", clock.monotonicMs(), true);
    judge.starts(command);
    const fails = act.outcome === "fail" || act.outcome === "reject";
    await process.clock.sleep(act.outcome === "stuck" || act.outcome === "never" ? 6 * TIMEOUT_MS : act.ms, signal);
    if (act.acks === true) town.stage.acknowledge(seq);
    command.endedMs = clock.monotonicMs();
    command.outcome = fails ? "failed" : "ok";
    if (fails) throw new Error("it failed");
  };
  return living(town, process, work().catch(excused));
}

/** A consumer that handles each message once. It keeps the right to complete in its own hands only. */
export function consumer(town: Town, id: string, { ms, ends }: { readonly ms: number; readonly ends: "complete" | "abandon" }): Living {
  const process = town.spawn();
  const { inbox } = town.production;
  const { processes } = town.judge.state;
  const db = town.handle(process);
  const transact = async <T>(body: () => T): Promise<T> => {
    await process.cross(undefined);
    return process.cross(db.transaction(body).immediate());
  };
  const work = async (): Promise<void> => {
    const terms = {
      holder: process.name,
      standing: (holder: string) => (processes.get(holder)?.isAlive() === true ? "alive" : "gone"),
    } as const;
    const begun = await transact(() =>
      inbox.begin(db, { consumer: "anna", id }, { ...terms, now: process.clock.now(), token: town.entropy.token() }),
    );
    if (begun.outcome !== "begun") return;
    if (town.judge.state.handling.get(begun.claim.token) !== process) town.judge.accuse("a consumer was told to begin, and has no entry");
    await process.clock.sleep(ms);
    await transact(() => (ends === "complete" ? inbox.complete(db, begun.claim, process.clock.now()) : inbox.abandon(db, begun.claim)));
  };
  return living(
    town,
    process,
    work().catch((error: unknown) => {
      if (!(error instanceof Error && error.name === "SQLiteError")) throw error;
    }),
  );
}

/** A command that does one thing: an operator's, a consumer's. */
export async function once(town: Town, work: (store: Store) => Promise<unknown>): Promise<void> {
  const process = town.spawn();
  await work(town.store(process));
  process.end();
}
