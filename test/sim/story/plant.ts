/** Plants a fault in a copy of the sources. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fault } from "./faults.ts";

const SRC = join(import.meta.dir, "../../../src");
/** What a world runs; the other rooms are not copied. */
const ROOMS = ["core", "dispatcher", "library", "store", "transport", "host.ts", "libc.ts"];

/**
 * A directory with the changed sources, which is removed when the test ends: `using copy = plant(fault.edits)`.
 * @throws Error when a text that the fault replaces does not stand in its file exactly once
 */
export function plant(edits: Fault["edits"]): { readonly src: string; [Symbol.dispose](): void } {
  using copy = new DisposableStack();
  const src = mkdtempSync(join(tmpdir(), "outbox-planted-"));
  copy.defer(() => rmSync(src, { recursive: true, force: true }));
  for (const room of ROOMS) cpSync(join(SRC, room), join(src, room), { recursive: true });
  for (const [file, text, becomes] of edits) {
    const path = join(src, file);
    const parts = readFileSync(path, "utf8").split(text);
    if (parts.length !== 2) throw new Error(`${file} has this ${parts.length - 1} times, not once: ${text}`);
    writeFileSync(path, parts.join(becomes));
  }
  const planted = copy.move();
  return { src, [Symbol.dispose]: () => planted.dispose() };
}
