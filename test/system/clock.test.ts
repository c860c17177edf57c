/** Days that pass while nothing runs. `scripts/system.ts` runs this; it needs libfaketime, whose path it puts in LIBFAKETIME. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Place } from "../cli/outbox.ts";

/** The environment in which the clock is ahead by `shift`, such as `+2d`. */
function ahead(shift: string): { readonly env: Readonly<Record<string, string>> } {
  return { env: { LD_PRELOAD: process.env["LIBFAKETIME"] ?? "", FAKETIME: shift, FAKETIME_DONT_FAKE_MONOTONIC: "1" } };
}

/** A place whose every message goes to `true`. */
function deliveringPlace(): Place {
  const place = new Place();
  const settings = join(place.home, "settings.yaml");
  writeFileSync(settings, 'dispatch: { notify_template: ["true"] }\n', { mode: 0o600 });
  return place;
}

const RUN = ["--config", "settings.yaml", "run", "--once", "--json"];
const NOTHING = '{"attempted":0,"delivered":0,"dead_letter":0,"expired":0,"retried":0}\n';

test("a dispatch that is delayed by a day goes out on the next day and not before", async () => {
  using place = deliveringPlace();
  await place.run(["--config", "settings.yaml", "enqueue", "--kind", "ping", "--to", "seat-1", "--delay", "1d"], { stdout: /./ });
  await place.run(RUN, { stdout: NOTHING });
  await place.run(RUN, { stdout: '{"attempted":1,"delivered":1,"dead_letter":0,"expired":0,"retried":0}\n' }, ahead("+25h"));
});

test("a dispatch whose deadline passed while nothing ran expires and is not sent", async () => {
  using place = deliveringPlace();
  await place.run(["--config", "settings.yaml", "enqueue", "--kind", "ping", "--to", "seat-1", "--expires-in", "1h"], { stdout: /./ });
  await place.run(RUN, { stdout: '{"attempted":1,"delivered":0,"dead_letter":0,"expired":1,"retried":0}\n' }, ahead("+2h"));
});

test("a clock that is set back makes a due dispatch wait and loses nothing", async () => {
  using place = deliveringPlace();
  await place.run(["--config", "settings.yaml", "enqueue", "--kind", "ping", "--to", "seat-1"], { stdout: /./ });
  await place.run(RUN, { stdout: NOTHING }, ahead("-2h"));
  const delivered = await place.run(RUN, { stdout: /./ });
  expect(delivered).toContain('"delivered":1');
});
