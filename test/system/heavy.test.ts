/** Much of everything: batches without end, large bodies, many messages. Apart, because they take memory and time; each is bounded in both. */
import { expect, test } from "bun:test";
import { BINARY, Place } from "../cli/outbox.ts";
import { dirname } from "node:path";

const LINE = '{"kind":"k","deliver_to":"d"}';

interface Came {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly megabytes: number;
}

/** Runs a line of sh with the program as `outbox`; the memory is that of whichever process took most. */
async function sh(place: Place, line: string): Promise<Came> {
  const child = Bun.spawn(["/bin/sh", "-c", line], {
    cwd: place.home,
    env: place.env({ PATH: `${dirname(BINARY)}:/usr/bin:/bin` }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  return { code: child.exitCode, stdout, stderr, megabytes: (child.resourceUsage()?.maxRSS ?? Number.POSITIVE_INFINITY) / 1e6 };
}

test("a batch of 100,000 lines is stored whole, in order", async () => {
  using place = new Place();
  const { code, stdout, stderr, megabytes } = await sh(place, `yes '${LINE}' | head -100000 | outbox enqueue --batch -`);
  expect([code, stderr]).toEqual([0, ""]);
  const ids = stdout.trimEnd().split("\n");
  expect([ids.length, new Set(ids).size]).toEqual([100_000, 100_000]);
  expect(megabytes).toBeLessThan(400);
  const [last] = await place.json(["ls", "--limit", "1"]);
  expect(last).toMatchObject({ seq: 100_000, id: ids.at(-1) });
});

test("a batch of 100,000 lines of which the last is bad is not stored at all", async () => {
  using place = new Place();
  const came = await sh(place, `(yes '${LINE}' | head -100000; echo '{') | outbox enqueue --batch -`);
  expect(came).toMatchObject({ code: 65, stdout: "" });
  expect(came.stderr).toMatch(/^outbox: batch line 100001: [^\n]*nothing was stored; [^\n]*\n$/);
  expect(came.megabytes).toBeLessThan(400);
  expect((await place.start(["ls"])).code).toBe(1);
});

test.each([
  ["lines", `yes '${LINE}'`, /^outbox: batch line 200001: [^\n]*nothing was stored; hand it in as several batches\n$/],
  ["nonsense", "yes", /^outbox: batch line 1: [^\n]*\n$/],
  ["blank lines", "yes ''", /^outbox: stdin holds more than 268435456 bytes; hand it in as several batches\n$/],
  ["one line", "tr '\\0' x </dev/zero", /^outbox: stdin holds more than 268435456 bytes; hand it in as several batches\n$/],
])("a batch of %s without end is refused in bounded memory", async (_, source, stderr) => {
  using place = new Place();
  const came = await sh(place, `${source} | outbox enqueue --batch -`);
  expect(came).toMatchObject({ code: 65, stdout: "" });
  expect(came.stderr).toMatch(stderr);
  expect(came.megabytes).toBeLessThan(400);
});

test("a hundred bodies of a megabyte cost a few times their size to store, and little to list", async () => {
  using place = new Place();
  const body = `{"kind":"k","deliver_to":"d","body":{"t":"'"$(head -c 1000000 /dev/zero | tr '\\0' x)"'"}}`;
  const stored = await sh(place, `for n in $(seq 100); do printf '%s\\n' '${body}'; done | outbox enqueue --batch -`);
  expect([stored.code, stored.stderr]).toEqual([0, ""]);
  expect(stored.megabytes).toBeLessThan(400);
  for (const line of ["outbox ls --limit 0", "outbox ls --json --limit 0", "outbox show 1 2 3", "outbox stats"]) {
    const shown = await sh(place, `${line} >/dev/null`);
    expect([line, shown.code, shown.megabytes < 200]).toEqual([line, 0, true]);
  }
});

test("20,000 waiting messages cost a runner no more memory than a few", async () => {
  using place = new Place();
  expect(
    (await sh(place, `yes '{"kind":"k","deliver_to":"d","not_before":4000000000}' | head -20000 | outbox enqueue --batch -`)).code,
  ).toBe(0);
  expect(
    (
      await sh(
        place,
        "mkdir -m 700 -p .config/outbox && echo 'dispatch: {notify_template: [/bin/true]}' >.config/outbox/settings.yaml && chmod 600 .config/outbox/settings.yaml",
      )
    ).code,
  ).toBe(0);
  const came = await sh(place, "outbox enqueue --kind k --to d >/dev/null; outbox run --once --json");
  expect(came).toMatchObject({ code: 0, stdout: '{"attempted":1,"delivered":1,"dead_letter":0,"expired":0,"retried":0}\n' });
  expect(came.megabytes).toBeLessThan(200);
});
