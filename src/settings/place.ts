/** Where names in the settings file start, and where things are when nothing is said. Pure: the caller brings the environment. */

type Env = Readonly<Record<string, string | undefined>>;

export interface Place {
  /** Directory of the settings file: relative paths start here. Absolute. */
  readonly directory: string;
  /** The user's home, for a leading `~/`. Absolute. */
  readonly home: string;
  /** The database when no setting names one. Absolute. */
  readonly database: string;
}

/** The place of a settings file in this directory. */
export function placeOf(directory: string, home: string, env: Env): Place {
  return { directory, home, database: `${xdg(env, "XDG_STATE_HOME", `${home}/.local/state`)}/outbox/outbox.db` };
}

/** A base directory of the XDG kind: the variable, if it is an absolute path (others the specification says to ignore). */
export function xdg(env: Env, variable: "XDG_CONFIG_HOME" | "XDG_STATE_HOME", otherwise: string): string {
  const value = env[variable];
  return normal(value?.startsWith("/") === true ? value : otherwise);
}

/** The absolute path that a name in the settings file stands for. */
export function absolute(path: string, place: Pick<Place, "directory" | "home">): string {
  return normal(expanded(path, place));
}

/** The same to the letter, `..` left to the system: after a link it is not where the letters say. */
export function expanded(path: string, { directory, home }: Pick<Place, "directory" | "home">): string {
  if (path.startsWith("~/")) return joined(home, path.slice(2));
  return path.startsWith("/") ? path : joined(directory, path.replace(/^(\.\/+)+/, ""));
}

function joined(directory: string, name: string): string {
  return `${directory.replace(/\/+$/, "")}/${name}`;
}

/** Without `//`, `/./`, and `..` taken back, by the letters alone: links are not followed. */
function normal(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
