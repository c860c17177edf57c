/** Plays a story: its deeds one after the other, then an end without faults, in which everything must come to rest. */
import type { Database } from "bun:sqlite";
import type { Production } from "../production.ts";
import { consumer, enqueue, type Living, now, once, program, runner } from "./cast.ts";
import type { Row } from "./journal.ts";
import type { Process } from "./process.ts";
import { isOver } from "./state.ts";
import { type Town, town } from "./town.ts";
import type { Deed, Scope, Story } from "./words.ts";

const RUNNERS = 3;
/** How long it may take until everything has come to its end, in seconds. */
const REST_S = 600;
/** How long a runner may take to end, in seconds: what it runs, and what it waits for. */
const ENDS_S = 90;

/** Runners that begin together would look at their clocks together for ever. */
const APART_MS = 370;

/** @throws what the judge found */
export async function play(db: Database, production: Production, story: Story): Promise<void> {
  const place = town(db, production);
  const { clock, judge } = place;
  const pulse = (): void => {
    judge.pulse();
    clock.at(clock.monotonicMs() + 1_000, pulse);
  };
  pulse();
  await clock.until(Promise.race([acts(place, story), judge.breach]));
}

async function acts(place: Town, { runners, steps, pauseMs, ending }: Story): Promise<void> {
  const cast: Living[] = [];
  for (let started = 0; started < runners; started += 1) {
    cast.push(runner(place, "forever"));
    await place.clock.sleep(APART_MS);
  }
  for (const { afterMs, deed } of steps) {
    if (afterMs > 0) await place.clock.sleep(afterMs);
    perform(place, cast, deed);
  }
  await place.clock.sleep(pauseMs);
  await rest(place, cast, ending);
}

function perform(place: Town, cast: Living[], deed: Deed): void {
  const { clock, judge } = place;
  const alive = cast.filter(({ process }) => process.isAlive());
  /** One that has a command in hand, or any where none has. */
  const one = (who: number): Process | undefined => {
    const busy = alive.filter(({ process }) => judge.state.commands.some(({ by, endedMs }) => by === process && endedMs === null));
    const from = busy.length > 0 ? busy : alive;
    return from[who % Math.max(1, from.length)]?.process;
  };
  /** One of those of which it can be done, or any where there is none. */
  const ref = (row: number, fits: (row: Row) => boolean): { seq: number } => {
    const all = [...judge.state.rows.values()];
    const fit = all.filter(fits);
    const from = fit.length > 0 ? fit : all;
    return { seq: from[row % Math.max(1, from.length)]?.seq ?? 0 };
  };
  const by = { actor: "anna", dryRun: false };
  const operate = (work: Parameters<typeof once>[1]): void => void once(place, work).catch((error: unknown) => judge.accuse(String(error)));
  switch (deed.do) {
    case "enqueue":
      return void enqueue(place, deed.letter, deed.mishap).catch((error: unknown) => judge.accuse(`enqueue failed: ${String(error)}`));
    case "run":
      if (alive.length < RUNNERS) cast.push(runner(place, deed.mode));
      return;
    case "now":
      return void cast.push(now(place, deed.letter));
    case "deliver":
      return void cast.push(program(place, deed.letter, deed.leaseS, deed.rollback));
    case "kill":
      return one(deed.who)?.kill();
    case "crash":
      return one(deed.who)?.doom(deed.crossings);
    case "freeze":
      return one(deed.who)?.freeze(deed.ms);
    case "stop": {
      const process = one(deed.who);
      process?.stop.abort("SIGTERM");
      if (deed.twice) clock.at(clock.monotonicMs() + 500, () => process?.now.abort("SIGTERM"));
      return;
    }
    case "trouble":
      return void one(deed.who)?.mishaps.push(...deed.mishaps);
    case "clock":
      return place.setClock(deed.seconds);
    case "ack": {
      const { seq } = ref(deed.row, (row) => row.ack_token !== null && !isOver(row));
      const token = judge.state.rows.get(seq)?.ack_token ?? "";
      return operate((store) => store.ack({ seq }, deed.right ? token : "wrong"));
    }
    case "retry":
      return operate((store) =>
        store.retry(
          ref(deed.row, ({ status }) => status === "dead_letter" || status === "expired"),
          { ...by, dueInS: 0, expiresInS: deed.expiresS },
        ),
      );
    case "cancel":
      return operate((store) =>
        store.cancel(
          ref(deed.row, (row) => !isOver(row)),
          by,
        ),
      );
    case "purge":
      return operate((store) =>
        store.purge(
          ref(deed.row, () => true),
          { ...by, force: deed.force },
        ),
      );
    case "change many": {
      const { verb, to } = deed;
      const change =
        verb === "retry"
          ? ({ verb, gapS: 0, expiresInS: null } as const)
          : verb === "purge"
            ? ({ verb, force: false } as const)
            : ({ verb } as const);
      return operate(async (store) => {
        const many = store.changeMany({ selection: to === null ? {} : { to: [to] }, change, ...by });
        while (!(await many.next()).done);
      });
    }
    case "handle": {
      const id = judge.state.rows.get(ref(deed.row, () => true).seq)?.id;
      if (id !== undefined) cast.push(consumer(place, id, deed));
      return;
    }
    case "hold":
      return operate((store) => store.hold(scopeOf(deed.scope), { actor: "anna", forS: deed.forS, note: null }));
    case "resume":
      return operate((store) => store.resume(deed.scope === "all" ? "all" : scopeOf(deed.scope), { actor: "anna" }));
    case "break":
      return void place.brokenUntilMs.set(deed.kind, clock.monotonicMs() + deed.ms);
    default:
      deed satisfies never;
  }
}

function scopeOf({ to, kind, key }: Scope) {
  return { deliverTo: to ?? null, kind: kind ?? null, orderingKey: key ?? null };
}

/** Nothing goes wrong any more, and time goes on. */
async function rest(place: Town, cast: Living[], ending: Story["ending"]): Promise<void> {
  const { clock, judge } = place;
  const { rows } = judge.state;
  // A clock that was set back makes everything late by as much: somebody sets it right.
  place.setClock(Math.max(0, place.latest() - clock.now()));
  place.brokenUntilMs.clear();
  place.stage.calm = true;
  for (const { process } of cast) process.mishaps.length = 0;
  await once(place, (store) => store.resume("all", { actor: "anna" }));
  if (ending === "forever") cast.push(runner(place, "forever"));
  const endsMs = clock.monotonicMs() + REST_S * 1_000;
  const left = (): number[] => [...rows.values()].filter((row) => !isOver(row)).map(({ seq }) => seq);
  while (left().length > 0) {
    if (clock.monotonicMs() > endsMs) return judge.accuse(`these rows never come to their end: ${left().join(", ")}`);
    if (ending === "once") {
      const last = runner(place, "once");
      cast.push(last);
      await within(place, last.over, "run --once");
    }
    const due = Math.min(...[...rows.values()].filter((row) => !isOver(row)).map((row) => row.next_attempt_at));
    await clock.sleep(ending === "forever" ? 1_000 : Math.min(Math.max(1, due - clock.now()), 60) * 1_000);
  }
  for (const { process } of cast) process.stop.abort("SIGTERM");
  for (const { process, over } of cast) await within(place, over, process.name);
}

async function within({ clock, judge }: Town, work: Promise<unknown>, what: string): Promise<void> {
  const late = new AbortController();
  const over = await Promise.race([work.then(() => true), clock.sleep(ENDS_S * 1_000, late.signal).then(() => false)]);
  late.abort();
  if (!over) judge.accuse(`${what} does not end`);
}
