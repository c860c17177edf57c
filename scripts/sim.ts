/**
 * The simulation for a night: `bun scripts/sim.ts --worlds 100000 [--seed N] [--src DIR]`. Plays as many stories; the first that
 * goes wrong is made short and printed with its seed, exit code 1. DIR: sources to simulate in place of this tree's.
 */
import { parseArgs } from "node:util";
import { resolve } from "node:path";
import { production } from "../test/sim/production.ts";
import { worlds } from "../test/sim/story/worlds.ts";

const { values } = parseArgs({ options: { worlds: { type: "string" }, seed: { type: "string" }, src: { type: "string" } } });
const wanted = Number(values.worlds ?? 1_000);
const first = Number(values.seed ?? Math.floor(Math.random() * 1_000_000_000));
if (!Number.isSafeInteger(wanted) || wanted < 1 || !Number.isSafeInteger(first)) {
  console.error("usage: bun scripts/sim.ts [--worlds N] [--seed N] [--src DIR]");
  process.exit(2);
}

/** Stories of one seed: so many can be played again to come back to one that went wrong. */
const AT_ONCE = 250;
const code = await production(values.src === undefined ? undefined : resolve(values.src));
const startedMs = performance.now();
for (let done = 0, seed = first; done < wanted; done += AT_ONCE, seed += 1) {
  const count = Math.min(AT_ONCE, wanted - done);
  const { failure } = await worlds(code, { count, seed, shorten: true });
  if (failure !== null) {
    console.log(`\n${failure.text}\n\nseed ${seed}: bun scripts/sim.ts --worlds ${count} --seed ${seed}\n${JSON.stringify(failure.story)}`);
    process.exit(1);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  progress(`${done + count} of ${wanted} worlds, ${((done + count) / seconds).toFixed(0)} a second, seed ${seed}`);
}
progress(null);
console.log(`${wanted} worlds, seeds from ${first} on: nothing went wrong`);

/** One line that is written over on a terminal; elsewhere one line a minute would be too many. */
function progress(text: string | null): void {
  if (process.stderr.isTTY) process.stderr.write(text === null ? "\r\u001B[K" : `\r\u001B[K${text}`);
}
