/** One core of the power loss: gets a shift, answers with what was found. */
import { lookAt } from "./images.ts";
import type { Shift } from "./power.ts";

declare const self: Worker;

self.addEventListener("message", ({ data }: MessageEvent<Shift>) => {
  void lookAt(data).then((found) => self.postMessage(found, []));
});
