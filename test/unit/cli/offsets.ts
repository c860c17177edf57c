/** A process of its own for `zone.test.ts`, because TZ is read once: prints what each source says of the instants around every change. */
import { localZone } from "../../../src/cli/zone.ts";
import type { Zone } from "../../../src/core/seams.ts";
import { hostZone } from "../../../src/host.ts";
import { libc } from "../../../src/libc.ts";

const HOUR_S = 3_600;
const [FROM, TO] = [Date.UTC(2023, 0) / 1_000, Date.UTC(2027, 0) / 1_000];

const own = localZone(process.env["TZ"], libc, hostZone);
const instants = [0, 1e9, 4_102_444_800, 253_402_300_799, ...[own, hostZone].flatMap(edges)];
const said = instants.map((at) => [at, own.utcOffsetS(at), hostZone.utcOffsetS(at)]);
console.log(JSON.stringify(said));

/** The last second before each change, and the first one after it. */
function edges(zone: Zone): number[] {
  const found: number[] = [];
  for (let start = FROM; start < TO; start += 14 * 24 * HOUR_S) {
    let [before, after] = [start, start + 14 * 24 * HOUR_S];
    const offset = zone.utcOffsetS(before);
    if (zone.utcOffsetS(after) === offset) continue;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (zone.utcOffsetS(middle) === offset) before = middle;
      else after = middle;
    }
    found.push(before, after);
  }
  return found;
}
