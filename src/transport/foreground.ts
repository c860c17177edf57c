/**
 * A command in the foreground: it has our standard streams, terminal, process group, directory and environment, as if a shell had
 * started it in our place. For `inbox run`, whose own part is what comes before and after.
 */
import { readFileSync } from "node:fs";
import { find } from "./look_up.ts";
import { notStarted } from "./start.ts";

export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";

export type Foreground =
  /** As a shell says it: its exit code, or 128 and the number of the signal that ended it. */
  | { readonly kind: "ended"; readonly code: number }
  /** As a shell says it: 127 for no such command, 126 for one that cannot be executed. */
  | { readonly kind: "not started"; readonly code: 126 | 127; readonly error: string }
  /** The machine has no room for another process; later it may. */
  | { readonly kind: "exhausted"; readonly error: string };

export interface ForegroundTerms {
  /** Element 0 is the program: a path, or a name to look up in PATH. */
  readonly argv: readonly string[];
  /** Ours: it is looked up there, and the command gets it byte for byte. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Calls this at every signal that reaches us, from now on. */
  readonly onSignal: (listener: (signal: Signal) => void) => void;
}

/** Runs the command to its end. Its exit decides, whatever it left behind. Never rejects. */
export async function runForeground({ argv, env, onSignal }: ForegroundTerms): Promise<Foreground> {
  const [name = "", ...rest] = argv;
  const found = find(name, env);
  if (found.kind !== "found") return { kind: "not started", code: found.kind === "missing" ? 127 : 126, error: found.error };
  let child: Bun.Subprocess;
  try {
    // Without `env` it has the environment that we were started with, also what is no valid UTF-8.
    child = Bun.spawn([found.path, ...rest], { argv0: name, stdin: "inherit", stdout: "inherit", stderr: "inherit" });
  } catch (error) {
    return unstarted(error, found.path);
  }
  onSignal((signal) => {
    if (signal !== "SIGTERM" && terminalSentIt()) return;
    child.kill(signal);
  });
  return { kind: "ended", code: await child.exited };
}

/** Too long is not among it: what we were given is longer than what we hand on. */
function unstarted(error: unknown, path: string): Foreground {
  const outcome = notStarted(error, path);
  const said = "error" in outcome ? outcome.error : path;
  return outcome.kind === "released" ? { kind: "exhausted", error: said } : { kind: "not started", code: 126, error: said };
}

/**
 * Whether a signal came to the command as well: a terminal sends ^C, and its own end, to every process of its foreground group. To
 * hand that on would be a second ^C, which many programs take for "at once".
 */
function terminalSentIt(): boolean {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // After the program's name in brackets: state, parent, group, session, terminal, and that terminal's foreground group.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return group === foreground;
  } catch {
    const { isatty } = process.getBuiltinModule("node:tty");
    return [0, 1, 2].some((fd) => isatty(fd));
  }
}
