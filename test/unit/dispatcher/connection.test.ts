import { expect, test } from "bun:test";
import { OutboxError, type Trouble } from "../../../src/core/errors.ts";
import { connection } from "../../../src/dispatcher/connection.ts";
import { createStore } from "../../../src/store/store.ts";
import { countedEntropy, handClock, memory } from "../../fixtures/world.ts";

/** A connection to a database in memory that counts how often it is opened, and work that fails. */
function opened() {
  let times = 0;
  const place = connection(() => {
    times += 1;
    return Promise.resolve(createStore(memory(), ":memory:", { clock: handClock(), entropy: countedEntropy() }));
  });
  const fail = (kind: Trouble): Promise<unknown> =>
    place.use(() => Promise.reject(new OutboxError(kind, "it did not work"))).catch((error: unknown) => error);
  const works = (): Promise<unknown> => place.use((store) => store.figures());
  return { times: () => times, fail, works };
}

test("a handle is kept as long as it works, and while another process holds the lock", async () => {
  const { times, fail, works } = opened();
  await works();
  await fail("busy");
  await works();
  expect(times()).toBe(1);
});

test.each(["io", "bug", "settings"] as const)("a handle is closed after trouble of the kind %s and never used again", async (kind) => {
  const { times, fail, works } = opened();
  await works();
  expect(await fail(kind)).toMatchObject({ kind });
  await works();
  expect(times()).toBe(2);
});

test("a handle is closed when a lock lasts, because the lock may be its own", async () => {
  const { times, fail, works } = opened();
  for (let n = 0; n < 9; n += 1) await fail("busy");
  await works();
  expect(times()).toBe(1);
  for (let n = 0; n < 10; n += 1) await fail("busy");
  await works();
  expect(times()).toBe(2);
});
