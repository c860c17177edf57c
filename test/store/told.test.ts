import { expect, test } from "bun:test";
import { createStore } from "../../src/store/store.ts";
import { note, over, standing } from "../../src/store/told.ts";
import { countedEntropy, handClock, memory, T0 } from "../fixtures/world.ts";

test("a topic is told when it begins, when its text changes, and when an hour has passed since it was told", () => {
  const db = memory();
  const at = (now: number, text = "it hangs"): string => note(db, "circuit seat-1", text, T0 + now);
  expect([at(0), at(0), at(3_599), at(3_600), at(7_199), at(7_200)]).toEqual(["tell", "quiet", "quiet", "tell", "quiet", "tell"]);
  expect([at(7_201, "it burns"), at(7_202, "it burns"), at(10_800, "it burns"), at(10_801, "it burns")]).toEqual([
    "tell",
    "quiet",
    "quiet",
    "tell",
  ]);
});

test("a clock that was set back does not silence for longer than the step and an hour", () => {
  const db = memory();
  note(db, "a", "t", T0);
  expect([note(db, "a", "t", T0 - 1_800), note(db, "a", "t", T0 - 3_600)]).toEqual(["quiet", "tell"]);
});

test("its end is told once, and then it begins anew", () => {
  const db = memory();
  expect(over(db, "a")).toBe(false);
  note(db, "a", "t", T0);
  expect([over(db, "a"), over(db, "a"), note(db, "a", "t", T0)]).toEqual([true, false, "tell"]);
});

test("topics are apart, and found by how they begin, with no sign that stands for others", () => {
  const db = memory();
  for (const topic of ["fault b", "fault a", "fault%", "circuit a"]) expect(note(db, topic, "t", T0)).toBe("tell");
  expect(standing(db, "fault ")).toEqual(["fault a", "fault b"]);
  expect(standing(db, "fault%")).toEqual(["fault%"]);
  expect(standing(db, "")).toHaveLength(4);
});

test("what one store told, another one of the same database keeps quiet about", async () => {
  const db = memory();
  const clock = handClock();
  const [first, second] = [1, 2].map(() => createStore(db, "memory", { clock, entropy: countedEntropy() }));
  expect([await first?.note("a", "t"), await second?.note("a", "t"), await second?.standing("")]).toEqual(["tell", "quiet", ["a"]]);
  expect([await second?.over("a"), await first?.over("a")]).toEqual([true, false]);
});
