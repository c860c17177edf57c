/** Finds the program of an argv the way a shell does, or says why it cannot be started. Starts nothing. */
import { accessSync, constants, statSync } from "node:fs";
import { refusedCode } from "../core/refused.ts";

/** Searched when no PATH is set: where every Unix keeps the programs that POSIX names. */
const DEFAULT_PATH = "/usr/bin:/bin";

export type LookUp = { readonly kind: "found"; readonly path: string } | { readonly kind: "fault"; readonly error: string };

/**
 * @param argv0 a path when it has a slash, else a name to find in the PATH of `env`. Entries of PATH that are empty or relative
 * mean the current directory to some shells; they are passed over, because it would be another one for every runner.
 */
export function lookUp(argv0: string, env: Readonly<Record<string, string | undefined>>): LookUp {
  const found = find(argv0, env);
  return found.kind === "found" ? found : { kind: "fault", error: found.error };
}

/** The same, told apart: there is nothing of that name, or what there is cannot be executed. */
export type Found = { readonly kind: "found"; readonly path: string } | { readonly kind: "missing" | "refused"; readonly error: string };

export function find(argv0: string, env: Readonly<Record<string, string | undefined>>): Found {
  if (argv0 === "") return { kind: "missing", error: "the command is an empty string" };
  if (argv0.includes("\0")) return { kind: "missing", error: `the command ${JSON.stringify(argv0)} has a NUL in its name` };
  if (argv0.includes("/")) {
    const trouble = troubleWith(argv0);
    if (trouble === null) return { kind: "found", path: argv0 };
    return { kind: trouble === MISSING ? "missing" : "refused", error: `${argv0} ${trouble}` };
  }
  const path = env["PATH"] || DEFAULT_PATH;
  let near = "";
  for (const directory of path.split(":")) {
    if (!directory.startsWith("/")) continue;
    const candidate = `${directory.replace(/\/+$/, "")}/${argv0}`;
    const trouble = troubleWith(candidate);
    if (trouble === null) return { kind: "found", path: candidate };
    if (near === "" && trouble !== MISSING) near = `; ${candidate} ${trouble}`;
  }
  const error = `no command "${argv0}" in PATH (${path}${env["PATH"] ? "" : ", since none is set"})${near}`;
  return { kind: near === "" ? "missing" : "refused", error };
}

const MISSING = "does not exist (ENOENT)";

/** Why this file cannot be executed; null when it can. */
function troubleWith(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return "is not a file";
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    switch (refusedCode(error)) {
      case "ENOENT":
      case "ENOTDIR":
        return MISSING;
      case "EACCES":
        return "is not executable by this user (EACCES)";
      default:
        return `cannot be looked at (${refusedCode(error) || String(error)})`;
    }
  }
}
