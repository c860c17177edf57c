/** The place where a story plays: one database, its processes, their clock, and the judge. */
import type { Database } from "bun:sqlite";
import type { Dispatch } from "../../../src/core/dispatch.ts";
import type { Event } from "../../../src/dispatcher/report.ts";
import type { Store } from "../../../src/store/store.ts";
import { countedEntropy, T0 } from "../../fixtures/world.ts";
import type { Production } from "../production.ts";
import { type VirtualClock, virtualClock } from "../time.ts";
import { type Stage, transportOf } from "./commands.ts";
import { changesOf, handleOf, type Shared } from "./disk.ts";
import { type Judge, judge } from "./judge.ts";
import { type Process, startProcess } from "./process.ts";
import type { Settling } from "./state.ts";
import { plan } from "./terms.ts";

export interface Town {
  readonly production: Production;
  readonly clock: VirtualClock;
  readonly judge: Judge;
  readonly entropy: ReturnType<typeof countedEntropy>;
  readonly stage: Stage;
  /** Until when the command of a kind cannot be found, monotonic. */
  readonly brokenUntilMs: Map<string, number>;
  readonly plan: () => ReturnType<typeof plan>;
  /** Sets the wall clock, by seconds. */
  setClock(seconds: number): void;
  /** The latest time that it ever showed. */
  latest(): number;
  spawn(isProgram?: boolean): Process;
  handle(of: Process): Database;
  store(of: Process): Store;
  transport(of: Process): ReturnType<typeof transportOf>;
  /** What a runner tells. */
  readonly tell: (event: Event) => void;
  /** Calls `look` soon after others committed. */
  watch(by: Process, look: () => void): void;
}

/** From a commit to the look of a runner that watches. */
const WAKE_MS = 2;
/** From a commit until its process knows of it: others come in between. */
const ANSWER_MS = 1;

export function town(db: Database, production: Production): Town {
  const clock = virtualClock(T0);
  const referee = judge(db, clock);
  const entropy = countedEntropy();
  const { brokenUntilMs } = referee.state;
  const watchers: { readonly by: Process; readonly look: () => void }[] = [];
  let pids = 0;
  let latest = T0;
  const broken = (kind: string): string | null => ((brokenUntilMs.get(kind) ?? 0) > clock.monotonicMs() ? "no such command" : null);
  const terms = plan(broken);
  const shared: Shared = {
    db,
    changes: changesOf(db),
    writing: false,
    commits: 0,
    look: (by, when) => referee.look(by, when),
    stalled: () => {
      referee.state.stalledAtMs = clock.monotonicMs();
    },
    rang: (by) => {
      for (const watcher of watchers) if (watcher.by !== by && watcher.by.isAlive()) clock.at(clock.monotonicMs() + WAKE_MS, watcher.look);
    },
  };
  const stage: Stage = {
    db,
    clock,
    acts: new Map(),
    calm: false,
    starts: (command) => referee.starts(command),
    refuses: () => {
      referee.state.refusedAtMs = clock.monotonicMs();
    },
    acknowledge(seq) {
      const token = referee.state.rows.get(seq)?.ack_token ?? null;
      if (token !== null) void place.store(place.spawn()).ack({ seq }, token);
    },
  };
  const place: Town = {
    production,
    clock,
    judge: referee,
    entropy,
    stage,
    brokenUntilMs,
    plan: () => terms,
    setClock(seconds) {
      latest = Math.max(latest, clock.now());
      clock.step(seconds);
      if (seconds !== 0) referee.stepped(seconds);
    },
    latest: () => latest,
    spawn(isProgram = false) {
      const pid = (pids += 1);
      const spins = (): void => referee.accuse(`process ${pid} spins: time does not go on`);
      const process = startProcess(clock, { pid, isProgram, spins });
      referee.state.processes.set(process.name, process);
      return process;
    },
    handle: (of) => handleOf(shared, of),
    store(of) {
      const store = production.createStore(handleOf(shared, of), ":memory:", { clock: of.clock, entropy });
      return crossing(store, of, place);
    },
    transport: (of) => transportOf(stage, of),
    tell: (event) => {
      if (event.kind === "stuck") referee.accuse(`the database refuses what became of row ${event.dispatch.seq}: ${event.error.message}`);
      if (event.kind === "trouble" && event.error.kind === "bug")
        referee.accuse(`trouble of a kind that must not be: ${event.error.message}`);
    },
    watch: (by, look) => void watchers.push({ by, look }),
  };
  return place;
}

/** The store, each of whose calls is an await before and after which its process may die. What is no trouble of the machine is told. */
function crossing(store: Store, process: Process, { judge, clock }: Town): Store {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      // It answers at once; what its transactions come to is looked at all the same.
      if (typeof method !== "function" || name === "changeMany") return method;
      return async (...given: unknown[]): Promise<unknown> => {
        await process.cross(undefined);
        judge.settles(name === "exchange" ? settling(given[0]) : []);
        try {
          const answer: unknown = await Reflect.apply(method, target, given);
          if (name === "exchange") await clock.sleep(ANSWER_MS);
          return await process.cross(answer);
        } catch (error) {
          if (!isOfTheMachine(error)) judge.accuse(`${String(name)} failed: ${String(error)}`);
          await process.cross(undefined);
          throw error;
        } finally {
          judge.settles([]);
        }
      };
    },
  });
}

/** Trouble that the story makes: a lock, a full disk, an I/O error. */
export function isOfTheMachine(error: unknown): boolean {
  return (
    error instanceof Error &&
    "kind" in error &&
    (error.kind === "busy" || error.kind === "io") &&
    error.cause instanceof Error &&
    "errno" in error.cause
  );
}

function settling(terms: unknown): Settling[] {
  const { settle } = terms as { settle: readonly { claim: Dispatch; outcome: { kind: Settling["outcome"] } }[] };
  return settle.map(({ claim, outcome }) => ({
    token: claim.lock_token ?? "",
    seq: claim.seq,
    to: claim.deliver_to,
    outcome: outcome.kind,
  }));
}
