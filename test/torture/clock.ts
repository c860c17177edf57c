/** Another time of day for the program: libfaketime, preloaded. */
import { faketime } from "../../scripts/faketime.ts";

const library = faketime();

/** The environment of a process whose wall clock is ahead, or behind where the number is negative. Its monotonic clock is not. */
export function clockAt(seconds: number): Readonly<Record<string, string>> {
  if (library === null) throw new Error("libfaketime is missing");
  return {
    LD_PRELOAD: library,
    FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    FAKETIME_DISABLE_SHM: "1",
  };
}
