import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { watcher } from "../../../src/dispatcher/wake.ts";
import { scratch } from "../../fixtures/world.ts";

test.each([
  ["a name that is too long", `${"n".repeat(256)}/a.db`],
  ["a path that is too long", `${"a/".repeat(2_500)}a.db`],
  ["a link that leads back to itself", "loop/a.db"],
])("%s is nothing to watch, and opening it has to say so", (_, name) => {
  using dir = scratch();
  symlinkSync("loop", dir.file("loop"));
  const watching = watcher(dir.file(name), () => undefined);
  expect(watching.check()).toBe("same");
  watching.opened();
  expect(watching.check()).toBe("same");
  watching.close();
});
