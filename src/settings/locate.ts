/** Which settings file it is, and what lies in it once it is found to be trustworthy. */
import { OutboxError } from "../core/errors.ts";
import { isDenied, refusedCode, refusedWords } from "../core/refused.ts";
import { escapeControls } from "../core/visible.ts";
import { libc } from "../libc.ts";
import { absolute, type Place, placeOf, xdg } from "./place.ts";
import type { Choice, Origin } from "./settings.ts";
import { readTrusted } from "./trust.ts";

/** The text of the settings file; null where there is none and the built-in settings hold. */
export interface Source {
  readonly file: string | null;
  readonly origin: Origin;
  readonly text: string | null;
  readonly place: Place;
}

/**
 * Finds and reads the file: the first that is named or exists.
 * @throws OutboxError `settings` (a named one is missing, no regular file, not text), `permission` (others could change it)
 */
export function openSource(choice: Choice): Source {
  const located = locate(choice);
  const home = homeOf(choice.env);
  // Without a file no setting holds a relative path, so any directory will do.
  if (located === null) return { file: null, origin: "built-in", text: null, place: placeOf(home, home, choice.env) };
  const { file, text } = readTrusted(located.path, choice.uid);
  const directory = file.slice(0, file.lastIndexOf("/")) || "/";
  return { file, origin: located.origin, text, place: placeOf(directory, home, choice.env) };
}

/** Where the user's own settings file is, whether it exists or not. */
export function userFile(env: Choice["env"]): string {
  return `${xdg(env, "XDG_CONFIG_HOME", `${homeOf(env)}/.config`)}/outbox/settings.yaml`;
}

/** The user's home: an absolute HOME, else what the system says, for which Bun too asks HOME first (1.4.5). */
export function homeOf(env: Choice["env"]): string {
  if (env["HOME"]?.startsWith("/") === true) return env["HOME"];
  const known = process.getBuiltinModule("node:os").homedir();
  return known.startsWith("/") ? known : (homeInPasswd(process.getuid?.()) ?? "/");
}

function homeInPasswd(uid: number | undefined): string | null {
  try {
    for (const line of process.getBuiltinModule("node:fs").readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [, , owner, , , home] = line.split(":");
      if (owner === String(uid) && home?.startsWith("/") === true) return home;
    }
  } catch {
    // The system keeps it elsewhere.
  }
  return null;
}

const SYSTEM_FILE = "/etc/outbox/settings.yaml";

/** The path as chosen, links not yet followed. Null: nothing is named and nothing exists. */
function locate(choice: Choice): { readonly path: string; readonly origin: Origin } | null {
  const named = namedFile(choice);
  if (named !== null) {
    if (exists(named.path)) return named;
    const what = `${named.origin} names a settings file that does not exist: ${escapeControls(named.path)}`;
    throw new OutboxError("settings", what, "check the path; outbox init FILE writes a new one");
  }
  const user = userFile(choice.env);
  if (exists(user)) return { path: user, origin: "user" };
  return exists(SYSTEM_FILE) ? { path: SYSTEM_FILE, origin: "system" } : null;
}

/** The file that flag or environment name, whether it exists or not. An empty variable counts as unset. */
export function namedFile(choice: Choice): { readonly path: string; readonly origin: "--config" | "OUTBOX_CONFIG" } | null {
  const variable = choice.env["OUTBOX_CONFIG"];
  const [value, origin] = choice.config === undefined ? ([variable, "OUTBOX_CONFIG"] as const) : ([choice.config, "--config"] as const);
  if (origin === "OUTBOX_CONFIG" && (value === undefined || value === "")) return null;
  if (value === undefined || value === "" || value.includes("\0"))
    throw new OutboxError("settings", `${origin} names no file`, "give the path of a settings file");
  // Two files could be one.
  if (value.includes("\ufffd"))
    throw new OutboxError(
      "settings",
      `${origin} names a file by bytes that are not UTF-8, or U+FFFD, which stands for them`,
      "rename it, or reach it by a link with another name",
    );
  const start = value.startsWith("/") || value.startsWith("~/") ? "/" : (choice.cwd ?? process.cwd());
  return { path: absolute(value, { home: homeOf(choice.env), directory: start }), origin };
}

/** Whether a file is named and is not there: a mistake in the call, not in the file. */
export function isNamedButMissing(choice: Choice): boolean {
  const named = namedFile(choice);
  return named !== null && !exists(named.path);
}

/** A dangling link exists: to pass it over would be to run with settings that nobody chose. */
function exists(path: string): boolean {
  const facts = libc()?.facts(path, "stay") ?? null;
  if (facts !== null) return facts !== "missing";
  try {
    process.getBuiltinModule("node:fs").lstatSync(path);
    return true;
  } catch (error) {
    const code = refusedCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw new OutboxError(
      isDenied(error) ? "permission" : "settings",
      `cannot look for a settings file at ${escapeControls(path)}: ${refusedWords(error)}`,
      "allow it, or name another with --config",
      { cause: error },
    );
  }
}
