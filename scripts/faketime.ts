/** Where libfaketime is: what moves the clock of a program from outside. `system.ts` and the torture look for it. */
import { Glob } from "bun";

/** The library to preload: where LIBFAKETIME says, else where distributions put it; null when there is none. */
export function faketime(): string | null {
  const named = process.env["LIBFAKETIME"];
  if (named !== undefined && named !== "") return Bun.file(named).size > 0 ? named : null;
  const roots = ["usr/lib", "usr/lib64", "usr/local/lib", "opt/homebrew/lib"].flatMap((lib) => [lib, `${lib}/*`]);
  const files = roots.flatMap((lib) => [`${lib}/faketime/libfaketime.so.1`, `${lib}/faketime/libfaketime.1.dylib`]);
  const found = files.flatMap((file) => Array.from(new Glob(file).scanSync({ cwd: "/", absolute: true })));
  return found[0] ?? null;
}
