/** Images of a disk, put down as files, opened and looked at. */
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type Change, Disk, FATES, type Fate, type Image } from "./disk.ts";
import { broken, open, type Promised } from "./laws.ts";
import type { Found, Shift } from "./power.ts";
import { numbers } from "./report.ts";
import { migrated } from "./stages.ts";
import { settle } from "./crashes.ts";
import { Site } from "./site.ts";
import { promisedAt, type Recording } from "./workloads.ts";

/** A cut that has no more distinct images gives up after so many in vain. */
const IN_VAIN = 12;
/** Violations of one shift that are told; a fault shows itself in thousands of images. */
const ENOUGH = 50;

/** A cut that is looked at has at least so many images. */
const FEWEST = FATES.length + 2;

/** Which cuts are looked at, where there are too many for all of them: evenly, and always the last, where everything was answered. */
function cutsOf({ recording, shift, of, images }: Shift): ReadonlySet<number> {
  const last = recording.changes.length;
  const stride = Math.max(1, ((last + 1) * FEWEST) / (images * of));
  const chosen = Array.from({ length: Math.floor(last / stride) + 1 }, (_, at) => Math.floor(at * stride));
  return new Set([...new Set([...chosen, last])].filter((_, at) => at % of === shift));
}

/** The cuts of one worker, each with as many distinct images as its part allows. */
export async function lookAt(shift: Shift): Promise<Found> {
  const { recording, images, opened, seed, scratch } = shift;
  const cuts = cutsOf(shift);
  const random = numbers(seed);
  const site = Site.make(scratch);
  mkdirSync(dirname(site.database), { recursive: true, mode: 0o700 });
  const violations: string[] = [];
  const seen = new Set<string>();
  let openedNow = 0;
  try {
    const disk = new Disk(recording.given);
    for (const [cut, change] of [null, ...recording.changes].entries()) {
      if (change !== null) disk.change(change);
      if (!cuts.has(cut)) continue;
      const promised = promisedAt(recording.answers, cut);
      // What earlier cuts had no use for, because little was pending there, the later ones get.
      const here = Math.max(FEWEST, (images - seen.size) / [...cuts].filter((other) => other >= cut).length);
      for (let at = 0, vain = 0, fresh = 0; fresh < here && vain < IN_VAIN && at < here * 4 + FATES.length; at += 1) {
        const fate: Fate = FATES[at] ?? (random() < 0.15 ? "the first" : "some");
        const image = disk.image(fate, random);
        const name = nameOf(image, promised);
        if (seen.has(name)) {
          vain += 1;
          continue;
        }
        vain = 0;
        fresh += 1;
        seen.add(name);
        putDown(image, recording, site);
        const found = judged(site, recording, promised);
        const chosen = openedNow < opened && random() < (2 * opened) / images;
        if (chosen || (found.length === 0 && promised.ids.length === 0 && openedNow < 2 * opened && random() < 0.1)) {
          openedNow += 1;
          putDown(image, recording, site);
          found.push(...(await goesOn(site, promised)));
        }
        violations.push(...found.map((what) => `cut ${cut} (${told(change)}), ${fate}: ${what}`));
        if (violations.length >= ENOUGH) return { cuts: cuts.size, images: seen.size, opened: openedNow, violations };
      }
    }
    return { cuts: cuts.size, images: seen.size, opened: openedNow, violations };
  } finally {
    site.remove();
  }
}

const told = (change: Change | null): string => (change === null ? "at the begin" : `after ${change.kind} of ${basename(change.path)}`);

/** Two images are one when their bytes are, and what was promised of them. */
function nameOf(image: Image, { ids, moves, gone }: Promised): string {
  const files = [...image].map(([path, bytes]) => `${path} ${Bun.hash(bytes)}`).toSorted();
  return [...files, ids.length, moves.length, gone.length].join("\n");
}

function putDown(image: Image, { database }: Recording, site: Site): void {
  const directory = dirname(site.database);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [path, bytes] of image) writeFileSync(`${site.database}${path.slice(database.length)}`, bytes, { mode: 0o600 });
}

/** Everything that does not hold of the image that lies there. */
function judged(site: Site, { migrates }: Recording, promised: Promised): string[] {
  if (!existsSync(site.database)) return promised.ids.length === 0 ? [] : [`lost: the database, with ${promised.ids.length} answers`];
  try {
    const found = looked(site.database, promised);
    return migrates && found.length === 0 ? migrated(site.database) : found;
  } catch (error) {
    return [`it cannot be opened: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** The laws, on a file that nobody else has open. */
export function looked(path: string, promised: Promised): string[] {
  const db = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    db.run("PRAGMA locking_mode = EXCLUSIVE"); // no shared index is made
    db.run("PRAGMA synchronous = OFF");
    return broken(db, 0, promised);
  } finally {
    db.close();
  }
}

/** The program itself opens the image, takes a message and brings all to its end. */
async function goesOn(site: Site, promised: Promised): Promise<string[]> {
  const { code, stderr } = await site.run(["enqueue", "--kind", "ping", "--to", "seat-1"]);
  if (code !== 0) return [`the program cannot go on: exit ${code}, ${stderr.trim()}`];
  await site.run(["resume", "--all"]); // the power may have been lost during a hold
  const stuck = await settle(site);
  const lost = looked(site.database, { ...promised, gone: [] }).concat(open(site.rows()));
  return [...stuck, ...lost].map((what) => `gone on with: ${what}`);
}
