/**
 * Local time as `date` shows it. The C library has it at once; the Date of JavaScript first loads the zones of ICU, which takes longer
 * than to show a message.
 */
import type { Zone } from "../core/seams.ts";
import type { Libc } from "../libc.ts";

/**
 * The C library reads more than Date does (`EST5EDT,M3.2.0,M11.1.0`, the path of a file), but has its zones from files that a small
 * image leaves out, and takes what it does not find for UTC. ICU brings its own: it is asked about every name that seems to be UTC.
 * @param tz the TZ of the environment
 * @param other where the C library cannot be had, or does not know this TZ
 */
export function localZone(tz: string | undefined, libc: () => Pick<Libc, "utcOffsetS"> | null, other: Zone): Zone {
  let chosen: Zone | undefined;
  const choose = (): Zone => {
    const c = libc();
    if (c === null) return other;
    const zone: Zone = { utcOffsetS: (epochS) => c.utcOffsetS(epochS) ?? other.utcOffsetS(epochS) };
    return PLAIN.has(tz ?? "") || !isUtc(zone) ? zone : other;
  };
  return { utcOffsetS: (epochS) => (chosen ??= choose()).utcOffsetS(epochS) };
}

/** What needs no file. */
const PLAIN: ReadonlySet<string> = new Set(["", "UTC", "Etc/UTC"]);

/** A January and a July: who is level with UTC in both is so all year. */
const PROBES = [1_704_067_200, 1_719_792_000];

export function isUtc(zone: Zone): boolean {
  return PROBES.every((epochS) => zone.utcOffsetS(epochS) === 0);
}
