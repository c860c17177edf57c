/** Which stories there are: fast-check writes them, and shortens the one that fails. A theme makes what belongs together meet. */
import fc from "fast-check";
import type { Act, Deed, Letter, Mishap, Scope, Step, Story } from "./words.ts";

/** Twice as likely where it stands twice. */
type Often<T> = readonly T[];
const among = <T>(often: Often<T>): fc.Arbitrary<T> => fc.constantFrom(...often);

interface Theme {
  readonly acts: Often<Act["outcome"]>;
  readonly ms: Often<number>;
  /** How many acts a letter has at least; after them its commands are quick. */
  readonly scripted: number;
  readonly max: Often<number>;
  /** In how many of a hundred letters these stand. */
  readonly keyed: number;
  readonly rare: number;
  /** In how many of a hundred an acknowledgement is asked for, and in how many the command gives it. */
  readonly acked: number;
  readonly to: Often<Letter["to"]>;
  readonly gapsMs: Often<number>;
  readonly pausesMs: Often<number>;
  /** How often each deed is done; those not named: once. */
  readonly deeds: Partial<Record<Deed["do"], number>>;
}

const MIXED: Theme = {
  acts: ["ok", "ok", "fail", "fail", "fail", "reject", "fault", "exhausted", "hang", "stuck", "never"],
  ms: [0, 40, 900, 1_900],
  scripted: 1,
  max: [1, 2, 3],
  keyed: 40,
  rare: 30,
  acked: 30,
  to: ["seat", "seat", "desk"],
  gapsMs: [0, 0, 3, 50, 300, 1_000, 2_500, 8_000],
  pausesMs: [0, 0, 10_000],
  deeds: { enqueue: 10, run: 4, now: 2, deliver: 2, kill: 2, crash: 3, freeze: 2, trouble: 3, clock: 2, ack: 2, retry: 2 },
};
/** A destination that fails: limits, circuits, probes. */
const OUTAGE: Theme = {
  ...MIXED,
  acts: ["fail", "fail", "fail", "fail", "hang", "ok"],
  keyed: 0,
  rare: 8,
  acked: 40,
  to: ["seat"],
  gapsMs: [0, 0, 0, 3, 300, 1_000, 5_100],
  deeds: {
    enqueue: 14,
    run: 3,
    now: 2,
    deliver: 1,
    kill: 2,
    crash: 2,
    hold: 1,
    resume: 1,
    purge: 0,
    cancel: 0,
    clock: 1,
    handle: 0,
    "change many": 0,
  },
};
/** One key: order, and what an operator brings back. */
const QUEUE: Theme = {
  ...MIXED,
  acts: ["ok", "fail", "reject", "reject", "hang", "stuck"],
  keyed: 95,
  rare: 8,
  gapsMs: [0, 3, 300, 1_000, 2_500],
  deeds: { enqueue: 10, run: 3, retry: 6, ack: 2, kill: 2, crash: 2, freeze: 2, hold: 1, purge: 1, clock: 1 },
};
/** Long commands, and runners that lose their claims meanwhile. */
const STALE: Theme = {
  ...MIXED,
  acts: ["hang", "hang", "stuck", "ok", "fail"],
  ms: [900, 1_900],
  scripted: 3,
  max: [2, 3, 3, 3],
  keyed: 10,
  rare: 15,
  gapsMs: [0, 300, 1_000, 1_000, 4_000, 14_000],
  pausesMs: [0, 18_000],
  deeds: {
    enqueue: 6,
    run: 4,
    freeze: 8,
    clock: 6,
    trouble: 4,
    crash: 2,
    now: 2,
    deliver: 2,
    kill: 1,
    purge: 0,
    hold: 0,
    resume: 0,
    handle: 0,
    "change many": 0,
  },
};
/** Clocks that are set while commands run. */
const DRIFT: Theme = {
  ...STALE,
  rare: 0,
  gapsMs: [0, 300, 700, 1_000, 2_000, 4_000],
  deeds: { ...STALE.deeds, clock: 10, freeze: 1, trouble: 1, crash: 1, now: 3, deliver: 3, ack: 0, retry: 0, cancel: 0, break: 0 },
};
/** Operators and consumers at work. */
const OFFICE: Theme = {
  ...MIXED,
  keyed: 20,
  rare: 50,
  gapsMs: [0, 3, 300, 1_000, 2_500],
  deeds: { enqueue: 12, run: 3, ack: 5, retry: 4, cancel: 4, purge: 4, hold: 6, resume: 2, handle: 8, "change many": 3, kill: 2, crash: 2 },
};

const DEEDS = (theme: Theme): { [D in Deed["do"]]: fc.Arbitrary<Extract<Deed, { do: D }>> } => {
  const letter = letterOf(theme);
  return {
    enqueue: fc.record({ do: is("enqueue"), letter, mishap: among<Mishap>(["none", "none", "none", "none", "busy", "lost", "kept"]) }),
    run: fc.record({ do: is("run"), mode: among(["forever", "forever", "once"]) }),
    now: fc.record({ do: is("now"), letter }),
    deliver: fc.record({ do: is("deliver"), letter, leaseS: among([1, 7]), rollback: among([false, false, true]) }),
    kill: fc.record({ do: is("kill"), who }),
    crash: fc.record({ do: is("crash"), who, crossings: fc.integer({ min: 1, max: 12 }) }),
    freeze: fc.record({ do: is("freeze"), who, ms: among([500, 8_000, 14_500, 16_000, 20_000]) }),
    stop: fc.record({ do: is("stop"), who, twice: fc.boolean() }),
    trouble: fc.record({ do: is("trouble"), who, mishaps: fc.oneof(fc.array(mishap, { minLength: 1, maxLength: 5 }), lasting) }),
    clock: fc.record({ do: is("clock"), seconds: among([-3_600, -10, 3, 6.5, 13, 15, 60, 3_600]) }),
    ack: fc.record({ do: is("ack"), row, right: among([true, true, true, false]) }),
    retry: fc.record({ do: is("retry"), row, expiresS: among([null, null, 20]) }),
    cancel: fc.record({ do: is("cancel"), row }),
    purge: fc.record({ do: is("purge"), row, force: fc.boolean() }),
    "change many": fc.record({ do: is("change many"), verb: among(["retry", "cancel", "purge"]), to: among(["seat", "desk", null]) }),
    handle: fc.record({ do: is("handle"), row: fc.nat({ max: 2 }), ms: among([0, 300, 5_000]), ends: among(["complete", "abandon"]) }),
    hold: fc.record({ do: is("hold"), scope, forS: among([null, 3, 15]) }),
    resume: fc.record({ do: is("resume"), scope: fc.oneof(scope, is("all")) }),
    break: fc.record({ do: is("break"), kind: among(["ping", "strict"]), ms: among([500, 6_000]) }),
  };
};

function is<const T>(value: T): fc.Arbitrary<T> {
  return fc.constant(value);
}

/** In some of a hundred. */
function sometimes<T>(percent: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return percent === 0
    ? fc.constant(undefined)
    : fc.oneof({ weight: 100 - percent, arbitrary: is(undefined) }, { weight: percent, arbitrary });
}

function letterOf({ acts, ms, scripted, max, keyed, rare, acked, to }: Theme): fc.Arbitrary<Letter> {
  const act = fc.record({
    outcome: among(acts),
    ms: among(ms),
    retryAfterMs: sometimes(10, among([0, 1_500, 20_000])),
    acks: sometimes(acked, is(true)),
  });
  return fc
    .record({
      kind: among(["ping", "ping", "ping", "ping", "ping", "strict", "stray"] as const),
      to: among(to),
      max: among(max),
      key: sometimes(keyed, among(["k", "k", "k", "l"] as const)),
      dedup: sometimes(rare, among(["a", "b"] as const)),
      ack: sometimes(acked, is(true)),
      delayS: sometimes(Math.round(rare / 2), among([1, 8])),
      expiresS: sometimes(rare, among([-1, 0, 2, 9, 30])),
      acts: sometimes(85, fc.array(act.map(given), { minLength: scripted, maxLength: 3 })),
    })
    .map(given);
}

/** Without what is not given. */
function given<T extends object>(record: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

const mishap = among<Mishap>(["none", "busy", "full", "lost", "kept", "kept", "slow", "late"]);
/** The same for some seconds: also what finishes meanwhile meets it. */
const lasting = fc
  .tuple(among<Mishap>(["busy", "busy", "full", "lost"]), fc.integer({ min: 3, max: 8 }))
  .map(([one, times]) => Array.from({ length: times }, () => one));
const who = fc.nat({ max: 5 });
const row = fc.nat({ max: 9 });
const scope: fc.Arbitrary<Scope> = fc.oneof(
  { weight: 3, arbitrary: is({}) },
  { weight: 3, arbitrary: fc.record({ to: among(["seat", "desk"] as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: among(["ping", "strict"] as const) }) },
  { weight: 1, arbitrary: fc.record({ key: among(["k", "l"] as const) }) },
  { weight: 1, arbitrary: fc.record({ to: is("seat"), kind: is("ping"), key: is("k") }) },
);

function storyOf(theme: Theme): fc.Arbitrary<Story> {
  const deeds = Object.entries(DEEDS(theme)).map(([name, arbitrary]) => ({ weight: theme.deeds[name as Deed["do"]] ?? 1, arbitrary }));
  const deed: fc.Arbitrary<Deed> = fc.oneof(...deeds.filter(({ weight }) => weight > 0));
  const step: fc.Arbitrary<Step> = fc.record({ afterMs: among(theme.gapsMs), deed });
  return fc.record({
    runners: fc.integer({ min: 0, max: 2 }),
    steps: fc.array(step, { minLength: 1, maxLength: 26, size: "max" }),
    pauseMs: among(theme.pausesMs),
    ending: among(["once", "forever"] as const),
  });
}

export const stories: fc.Arbitrary<Story> = fc.oneof(...[MIXED, OUTAGE, QUEUE, STALE, DRIFT, OFFICE].map(storyOf));
