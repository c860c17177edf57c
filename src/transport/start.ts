/** Starts a command, or says what its not starting means for the dispatch. */
import { accessSync, constants, statSync } from "node:fs";
import { ELEMENT_LIMIT } from "../core/element.ts";
import type { Outcome } from "../core/outcome.ts";
import { refusedCode } from "../core/refused.ts";
import { lookUp } from "./look_up.ts";
import type { Job } from "./transport.ts";

export type Child = Bun.Subprocess<"ignore" | Uint8Array, "pipe", "pipe">;

/**
 * Starts the job in a session and process group of its own, with nothing open but the three standard streams. Never throws. A
 * working directory that is gone is replaced by `/`.
 */
export function start(job: Job): Child | Outcome {
  const [name = "", ...rest] = job.argv;
  const found = lookUp(name, job.env);
  if (found.kind === "fault") return found;
  const refused = unpassable(job);
  if (refused !== null) return refused;
  const spawnIn = (cwd: string): Child =>
    Bun.spawn([found.path, ...rest], {
      argv0: name,
      cwd,
      env: { ...job.env },
      stdin: job.stdin.length === 0 ? "ignore" : job.stdin,
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
  try {
    return spawnIn(job.cwd);
  } catch (error) {
    if (job.cwd === "/" || canEnter(job.cwd)) return notStarted(error, found.path);
  }
  // The system reports a missing directory as if the command were missing.
  try {
    return spawnIn("/");
  } catch (error) {
    return notStarted(error, found.path);
  }
}

/**
 * Why these values can never be handed to a program; null when they can. What comes from the row is the row's trouble; the program's
 * own name and what the settings put into the environment are a fault.
 */
function unpassable(job: Job): Outcome | null {
  for (const [index, element] of job.argv.entries()) {
    if (index === 0) continue;
    if (element.includes("\0"))
      return { kind: "rejected", report: null, error: `argument ${index} contains a NUL, which no program can be given` };
    const size = Buffer.byteLength(element);
    if (size > ELEMENT_LIMIT)
      return {
        kind: "rejected",
        report: null,
        error: `argument ${index} has ${size} bytes and a program takes at most ${ELEMENT_LIMIT} in one; ${USE_STDIN}`,
      };
  }
  for (const [name, value] of Object.entries(job.env)) {
    const trouble = troubleWithVariable(name, value);
    if (trouble === null) continue;
    const error = `the environment variable ${name} ${trouble}`;
    return name.startsWith("OUTBOX_") ? { kind: "rejected", report: null, error } : { kind: "fault", error };
  }
  return null;
}

function troubleWithVariable(name: string, value: string): string | null {
  if (value.includes("\0")) return "contains a NUL, which no program can be given";
  const size = Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
  return size > ELEMENT_LIMIT ? `has ${size} bytes with its name and a program takes at most ${ELEMENT_LIMIT} in one` : null;
}

const USE_STDIN = "leave {payload}, {body} and {text} out of the template and the envelope goes to stdin";

/** What an error thrown at the start means. Exported for its table of tests: most of these cannot be had on demand. */
export function notStarted(error: unknown, path: string): Outcome {
  const code = refusedCode(error);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      // The file was there a moment ago, so what is missing is what its first line names.
      return { kind: "fault", error: `${path} cannot be started: the interpreter in its first line does not exist (${code})` };
    case "ENOEXEC":
      return {
        kind: "fault",
        error: `${path} cannot be started: it is neither a program for this machine nor a script with a #! line (${code})`,
      };
    case "EACCES":
    case "EPERM":
      return {
        kind: "fault",
        error: `${path} cannot be started: permission denied, for it or for the interpreter in its first line (${code})`,
      };
    case "ETXTBSY":
      return { kind: "fault", error: `${path} cannot be started: it is being written (${code})` };
    case "EISDIR":
    case "ELOOP":
    case "ENAMETOOLONG":
      return { kind: "fault", error: `${path} cannot be started (${code})` };
    case "E2BIG":
      return { kind: "rejected", report: null, error: `arguments and environment are too long together (${code}); ${USE_STDIN}` };
    case "EMFILE":
    case "ENFILE":
    case "EAGAIN":
    case "ENOMEM":
      return { kind: "released", error: `the machine has no room for another command (${code})`, exhausted: true };
    default:
      return { kind: "rejected", report: null, error: `${path} cannot be started: ${error instanceof Error ? error.message : code}` };
  }
}

function canEnter(directory: string): boolean {
  try {
    accessSync(directory, constants.X_OK);
    return statSync(directory).isDirectory();
  } catch {
    return false;
  }
}
