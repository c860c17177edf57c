/**
 * A runner that delivers for long does not grow, however much its commands say. `scripts/system.ts` runs this. A row takes some 8 ms on
 * two cores, so that 20,000 are two minutes and a half; `OUTBOX_TEST_ROWS=100000 npm run test:system` is for the night.
 */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { hostClock } from "../../src/host.ts";
import { sh, Workstation } from "../cli/running.ts";

const ROWS = Number(process.env["OUTBOX_TEST_ROWS"] ?? 20_000);
/** After this share of the rows every buffer has found its size: 10,000 of 100,000, and never less than 4,000. */
const WARM = Math.max(4_000, ROWS / 10);
/** Of the runner's peak, from there to the end. Kept output would be 16 KiB a row. */
const GROWS_MIB = 24;
const WHOLE_MIB = 400;
/** Of each stream, where `limits.output` keeps 8 KiB. */
const SAYS_BYTES = 20_000;

setDefaultTimeout(ROWS * 60 + 120_000);

interface Sample {
  readonly delivered: number;
  readonly peakMiB: number;
  readonly nowMiB: number;
  readonly descriptors: number;
}

function sample(pid: number, delivered: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1_024;
  return { delivered, peakMiB: mib("VmHWM"), nowMiB: mib("VmRSS"), descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

/** For whoever runs this by hand: the curve, in ten lines. */
function curve(samples: readonly Sample[]): string {
  const step = Math.max(1, Math.floor(samples.length / 10));
  const line = ({ delivered, nowMiB, peakMiB, descriptors }: Sample): string =>
    `${String(delivered).padStart(7)} delivered  ${nowMiB.toFixed(1)} MiB, peak ${peakMiB.toFixed(1)} MiB, ${descriptors} descriptors\n`;
  return samples.flatMap((each, at) => (at % step === 0 || at === samples.length - 1 ? [line(each)] : [])).join("");
}

test(`the memory of a run that delivers ${ROWS} messages to chatty commands stays flat`, async () => {
  using place = new Workstation().settings({
    dispatch: {
      notify_template: sh(`printf %${SAYS_BYTES}s out; printf %${SAYS_BYTES}s err >&2`),
      concurrency: 8,
      per_destination: 8,
      timeout: "60s",
    },
  });
  // Of several destinations and kinds, as it is on a workstation.
  for (let from = 0; from < ROWS; from += 50_000)
    await place.enqueue(
      ...Array.from({ length: Math.min(50_000, ROWS - from) }, (_, at) => ({ kind: `kind-${at % 5}`, deliver_to: `seat-${at % 16}` })),
    );
  const runner = place.background("run");
  const samples: Sample[] = [];
  {
    using db = new Database(place.database, { readonly: true });
    db.run("PRAGMA busy_timeout = 10000");
    const count = db.query<{ n: number }, []>("SELECT count(*) AS n FROM dispatch_outbox WHERE status = 'delivered'");
    for (let delivered = 0; delivered < ROWS;) {
      await hostClock.sleep(500);
      delivered = count.get()?.n ?? 0;
      expect(runner.hasExited()).toBeFalse();
      samples.push(sample(runner.pid, delivered));
    }
  }
  runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
  console.log(curve(samples));
  const warm = samples.findLast(({ delivered }) => delivered <= WARM);
  const last = samples.at(-1);
  if (warm === undefined || last === undefined) throw new Error("nothing was seen of the drain");
  expect(warm.delivered).toBeGreaterThan(WARM / 2);
  expect(last.peakMiB - warm.peakMiB).toBeLessThan(GROWS_MIB);
  expect(last.peakMiB).toBeLessThan(WHOLE_MIB);
  // What a command's end leaves open would be thousands.
  expect(Math.max(...samples.map(({ descriptors }) => descriptors))).toBeLessThan(300);
  // The commands said more than is kept, and once each.
  const [kept] = place.sql<{ n: number; attempts: number; bytes: number }>(
    "SELECT count(*) AS n, max(attempt) AS attempts, min(length(metadata)) AS bytes FROM dispatch_outbox WHERE status = 'delivered'",
  );
  expect(kept).toMatchObject({ n: ROWS, attempts: 1 });
  expect(kept?.bytes).toBeWithin(2_000, SAYS_BYTES);
});
