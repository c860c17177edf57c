/** The process that a program is, as this library sees it: its clock, its dice, and its name as a holder of claims. */
import type { Clock, Entropy } from "../core/seams.ts";
import { hostClock, hostEntropy, ownHolder } from "../host.ts";

export interface Place {
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly holder: () => string;
}

/** Where this code runs. Tests stand elsewhere. */
export const HERE: Place = { clock: hostClock, entropy: hostEntropy, holder: ownHolder };
