/** The real streams. Written with blocking calls to the descriptors: what `out` returns from has left the process. */
import { OutboxError } from "../core/errors.ts";
import { refusedCode, refusedWords } from "../core/refused.ts";
import { hostClock, hostEntropy, hostZone } from "../host.ts";
import { libc } from "../libc.ts";
import { type Interrupts, type Io, StdoutClosed, type Terminal } from "./io.ts";
import { localZone } from "./zone.ts";

/** @param listen installs the signal handlers; called at most once */
export function stdio(listen: () => Interrupts): Io {
  const env = process.env;
  let terminal: Terminal | undefined;
  let interrupts: Interrupts | undefined;
  return {
    env,
    cwd: process.cwd(),
    uid: process.getuid?.() ?? 0,
    clock: hostClock,
    entropy: hostEntropy,
    zone: localZone(env["TZ"], libc, hostZone),
    out: writeOut,
    err: (line) => {
      try {
        writeAll(2, `${line}\n`);
      } catch {
        // Nobody can be told.
      }
    },
    stdin: () => Bun.stdin.stream(),
    terminal: () => (terminal ??= findTerminal(env)),
    interrupts: () => (interrupts ??= listen()),
  };
}

function writeOut(text: string): void {
  try {
    writeAll(1, text);
  } catch (error) {
    if (refusedCode(error) === "EPIPE") throw new StdoutClosed("stdout is closed");
    throw new OutboxError("io", `cannot write to stdout: ${refusedWords(error)}`, "", { cause: error });
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = new TextEncoder().encode(text);
  const c = libc();
  for (let at = 0; at < bytes.length;) {
    const count = c?.write(fd, bytes.subarray(at)) ?? null;
    if (count === null) return writeWary(fd, bytes, at);
    at += count;
  }
}

/** A pipe may take a part only, and one that its maker set non-blocking may ask to wait. @throws what the system refused it for */
function writeWary(fd: number, bytes: Uint8Array, from: number): void {
  const { writeSync } = process.getBuiltinModule("node:fs");
  for (let at = from; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if (refusedCode(error) !== "EAGAIN") throw error;
      Bun.sleepSync(2);
    }
  }
}

function findTerminal(env: Io["env"]): Terminal {
  const stdout = isTerminal(1);
  const noColor = (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return {
    stdout,
    stderr: isTerminal(2),
    columns: stdout ? process.stdout.columns || 80 : null,
    color: stdout && !noColor,
  };
}

/** Asked without process.stdout where that is possible: it opens a Node stream, which takes longer than the whole of an enqueue. */
function isTerminal(descriptor: 1 | 2): boolean {
  return libc()?.isTerminal(descriptor) ?? (descriptor === 1 ? process.stdout : process.stderr).isTTY;
}
