/** Files that belong to somebody else. `scripts/system.ts` runs this; giving a file away needs root. */
import { expect, test } from "bun:test";
import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Place } from "../cli/outbox.ts";

/** A user that is neither root nor, on any usual machine, anybody. */
const SOMEBODY = 54_321;
const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

test("run refuses a database that another user owns, although it is root", async () => {
  using place = new Place();
  await place.run(ENQUEUE, { stdout: /./ });
  chownSync(place.database, SOMEBODY, SOMEBODY);
  await place.run(["run", "--once"], { code: 77, stderr: /belongs to another user/ });
});

test("a settings file that another user owns stops enqueue, and nothing is stored", async () => {
  using place = new Place();
  const settings = join(place.home, "settings.yaml");
  writeFileSync(settings, "{}\n", { mode: 0o600 });
  chownSync(settings, SOMEBODY, SOMEBODY);
  await place.run(["--config", "settings.yaml", ...ENQUEUE], { code: 77, stderr: /owned by another user/ });
  expect(await Bun.file(place.database).exists()).toBe(false);
});
