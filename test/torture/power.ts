/** The power lost at every moment of a recording: what the disk may hold then is built, opened and looked at. */
import { availableParallelism } from "node:os";
import type { Part } from "./report.ts";
import { record, type Recording, WORKLOADS } from "./workloads.ts";

/** What one worker does: every `of`th of the cuts of a recording that are looked at. */
export interface Shift {
  readonly recording: Recording;
  readonly shift: number;
  readonly of: number;
  /** Images to look at. */
  readonly images: number;
  /** Of these, how many the program itself opens too. */
  readonly opened: number;
  readonly seed: number;
  readonly scratch: string;
}

export interface Found {
  /** Moments at which the power was lost. */
  readonly cuts: number;
  /** Distinct ones. */
  readonly images: number;
  readonly opened: number;
  readonly violations: readonly string[];
}

export async function power(scratch: string, images: number): Promise<Omit<Part, "name" | "seconds">> {
  const shares = WORKLOADS.reduce((sum, { share }) => sum + share, 0);
  const of = Math.max(2, availableParallelism());
  const totals = { images: 0, cuts: 0, "of them opened by the program": 0, recordings: 0 };
  const violations: string[] = [];
  for (const workload of WORKLOADS) {
    const recording = await record(workload, scratch);
    if (recording.changes.filter(({ kind }) => kind === "sync").length < 3) violations.push(`${workload.name}: no syncs were seen`);
    const share = (images * workload.share) / shares / of;
    const found = await Promise.all(
      Array.from({ length: of }, (_, shift) =>
        work({ recording, shift, of, images: Math.ceil(share), opened: Math.ceil(share / 400), seed: shift + 1, scratch }),
      ),
    );
    totals.recordings += 1;
    for (const { cuts, images, opened, violations: more } of found) {
      totals.cuts += cuts;
      totals.images += images;
      totals["of them opened by the program"] += opened;
      violations.push(...more.map((violation) => `${workload.name}, ${violation}`));
    }
  }
  return { counts: totals, violations };
}

/** One worker has one core. */
function work(shift: Shift): Promise<Found> {
  const worker = new Worker(new URL("power_worker.ts", import.meta.url).href);
  return new Promise<Found>((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<Found>) => resolve(data));
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.postMessage(shift, []);
  }).finally(() => worker.terminate());
}
