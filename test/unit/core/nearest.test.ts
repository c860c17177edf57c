import { expect, test } from "bun:test";
import { nearest } from "../../../src/core/nearest.ts";

const NAMES = ["enqueue", "revive", "ls", "show", "retry", "cancel", "purge", "max-attempts", "dedup-key", "db"];

test.each([
  ["enqeue", "enqueue"],
  ["enqueu", "enqueue"],
  ["enq", "enqueue"],
  ["sl", "ls"],
  ["shwo", "show"],
  ["maxAttempts", "max-attempts"],
  ["max_attempts", "max-attempts"],
  ["DEDUP-KEY", "dedup-key"],
  ["max", "max-attempts"],
])("nearest() takes %p for %p", (word, name) => {
  expect(nearest(word, NAMES)).toBe(name);
});

test.each(["", "zz", "frobnicate", "constructor", "x".repeat(100_000)])(
  "nearest() suggests nothing for what is far from every name",
  (word) => {
    expect(nearest(word, NAMES)).toBeNull();
  },
);
