#!/usr/bin/env bun
/** The process edge: argv comes in, signals become AbortSignals, an exit code goes out. */
import type { Interrupts } from "./cli/io.ts";
import { run } from "./cli/run.ts";
import { stdio } from "./cli/stdio.ts";

// No await at the top level: on a promise that nothing settles it would spin a core for ever.
// Exit at once: everything was written with blocking calls, and a timer left behind must not keep the process.
void run(process.argv.slice(2), stdio(listen)).then((code) => process.exit(code));

function listen(): Interrupts {
  const stop = new AbortController();
  const now = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => (stop.signal.aborted ? now : stop).abort(signal));
  }
  return {
    stop: stop.signal,
    now: now.signal,
    onHangup: (listener) => void process.on("SIGHUP", listener),
    onSignal: (listener) => {
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => listener(signal));
    },
  };
}
