/** A backlog that `run --once` works off, beside the bare cost of starting the same commands (goal 6). */
import { writeFileSync } from "node:fs";
import type { Place } from "./place.ts";
import type { Line } from "./report.ts";
import { median, quantile, shuffled } from "./rounds.ts";

const ROWS = 2_000;
const AT_ONCE = 8;
/** Reads its message and says something, as most commands do. */
const COMMAND = ["/bin/cat"];

export async function drain(place: Place, count: number): Promise<readonly Line[]> {
  const settings = place.file("drain.yaml");
  const text = `dispatch: { notify_template: ${JSON.stringify(COMMAND)}, concurrency: ${AT_ONCE}, per_destination: ${AT_ONCE} }\n`;
  writeFileSync(settings, text, { mode: 0o600 });
  const body = JSON.stringify({ text: "x".repeat(650) }); // with its envelope 1 KB on stdin
  const batch = place.file("drain.ndjson");
  writeFileSync(batch, Array.from({ length: ROWS }, (_, n) => `{"kind":"k","deliver_to":"d${n % 50}","body":${body}}\n`).join(""));
  const message = new TextEncoder().encode("x".repeat(1_024));
  const times = { outbox: [] as number[], bare: [] as number[] };
  for (let round = 0; round < count; round += 1) {
    const db = place.file(`drain-${round}.db`);
    place.run(place.outbox("enqueue", "--db", db, "--batch", batch));
    for (const who of shuffled(["outbox", "bare"] as const)) {
      const started = performance.now();
      if (who === "bare") await bare(place, message);
      else place.run(place.outbox("run", "--once", "--db", db, "--config", settings));
      times[who].push(performance.now() - started);
    }
  }
  const rates = times.bare.map((ms, at) => ms / (times.outbox[at] ?? Number.NaN));
  const perS = (ms: readonly number[]): string => ((ROWS * 1_000) / median(ms)).toFixed(0);
  return [
    {
      goal: 6,
      what: "run --once: of bare Bun.spawn of the same commands",
      value: median(rates),
      unit: "x",
      atLeast: 0.8,
      note: `${ROWS} rows, start and end included: ${perS(times.outbox)} against ${perS(times.bare)} a second, rounds ${quantile(rates, 0.1).toFixed(2)}-${quantile(rates, 0.9).toFixed(2)}`,
    },
  ];
}

async function bare(place: Place, message: Uint8Array): Promise<void> {
  let left = ROWS;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const child = Bun.spawn(COMMAND, { env: place.env, stdin: message, stdout: "pipe", stderr: "pipe", detached: true });
      await Promise.all([child.stdout.bytes(), child.stderr.bytes(), child.exited]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}
