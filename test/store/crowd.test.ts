import { describe, expect, test } from "bun:test";
import { crowd, type CrowdTerms } from "../fixtures/store/crowd.ts";
import { scratch } from "../fixtures/world.ts";

/** More by environment: `OUTBOX_CROWD_SEEDS=100 OUTBOX_CROWD_STEPS=5000 bun test test/store/crowd.test.ts`. */
const SEEDS = Number(process.env["OUTBOX_CROWD_SEEDS"] ?? 2);
const STEPS = Number(process.env["OUTBOX_CROWD_STEPS"] ?? 1_000);
const LONG_MS = 5_000 + SEEDS * STEPS * 10;

function play(terms: Omit<CrowdTerms, "path">): ReturnType<typeof crowd> {
  using dir = scratch();
  return crowd({ ...terms, path: dir.file("a.db") });
}

/** Replaces all of these parts in the statements that have them. */
const swap =
  (...pairs: readonly (readonly [part: string, by: string])[]) =>
  (sql: string): string =>
    pairs.reduce((text, [part, by]) => text.replaceAll(part, by), sql);

test(
  "every claim of a crowd is the one that the rules name, and every row comes to its end",
  () => {
    for (let seed = 1; seed <= SEEDS; seed++) expect([seed, ...play({ seed, steps: STEPS }).wrong]).toEqual([seed]);
  },
  LONG_MS,
);

describe("the crowd catches", () => {
  /** With the first seed that caught it, where that is not 1. */
  const MUTANTS: readonly (readonly [name: string, terms: Pick<CrowdTerms, "mutate" | "alter">, seed?: number])[] = [
    ["a limit of one more", { mutate: swap(["THEN $per_destination ELSE", "THEN $per_destination + 1 ELSE"]) }],
    ["probes without limit", { mutate: swap(["THEN $per_destination ELSE 1 END", "THEN $per_destination ELSE $per_destination END"]) }, 3],
    ["an ignored cooldown", { mutate: swap(["d.wake_at <= $due_by", "d.due_at <= $due_by"]) }, 2],
    [
      "no turn",
      {
        mutate: swap(
          ["(SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)", "TRUE"],
          ["o.ready = 1", "o.ready >= 0"],
          ["o INDEXED BY dispatch_ready", "o"],
        ),
      },
    ],
    ["a row put back beside a younger live one", { mutate: swap(["o.ordering_key IS NULL OR NOT EXISTS", "TRUE OR NOT EXISTS"]) }],
    ["a row taken from a living holder", { mutate: swap(["o.status = 'pending' OR o.holder IS NULL", "TRUE OR o.holder IS NULL"]) }],
    [
      "leases that ran out and are still counted",
      { mutate: swap(["AND f.next_attempt_at > $now) <", ") <"], ["AND f.next_attempt_at > $now)\n  <", ")\n  <"]) },
    ],
    [
      "slots that go to who waits longest, not to who has the fewest",
      {
        alter:
          "CREATE TRIGGER flat AFTER UPDATE OF flight ON dispatch_destinations WHEN NEW.flight > 0 BEGIN UPDATE dispatch_destinations SET flight = 0 WHERE deliver_to = NEW.deliver_to; END",
      },
    ],
    ["dead runners' leases left on their destination", { mutate: (sql) => (/SET flight =/.test(sql) ? "SELECT $now" : sql) }],
    ["a next of its key that nobody wakes", { alter: "DROP TRIGGER dispatch_ready_moves" }],
    ["a due time that nobody keeps", { alter: "DROP TRIGGER dispatch_due_moves" }],
    ["a hold that is forgotten at its end", { alter: "DROP TRIGGER dispatch_hold_is_over" }],
  ];
  test.each(MUTANTS)(
    "%s",
    (_, mutant, first = 1) => {
      for (let seed = first; seed < first + 12; seed++) if (play({ seed, steps: 1_000, ...mutant }).wrong.length > 0) return;
      throw new Error("it was not caught");
    },
    20_000,
  );
});
