/** What tests of runners need besides a place: settings, the rows as they are, a runner in the background. */
import { Database } from "bun:sqlite";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Dispatch, Transition } from "../../src/core/dispatch.ts";
import { hostClock } from "../../src/host.ts";
import { BINARY, Place } from "./outbox.ts";

/** One shell script as a template: `{id}` and `{attempt}` are its $1 and $2, the envelope comes on stdin. */
export function sh(script: string): readonly string[] {
  return ["/bin/sh", "-c", script, "sh", "{id}", "{attempt}"];
}

/** Notes that it runs, and ends when `letGo()` says so. */
export const WAITS = sh('echo >> "$HOME/log"; read -r _ < "$HOME/go"; exit 0');

/** A place with a settings file and direct sight of its database. */
export class Workstation extends Place {
  readonly #children: Bun.Subprocess[] = [];
  readonly settingsFile = join(this.home, ".config/outbox/settings.yaml");

  /** Writes the settings file. JSON is YAML. */
  settings(settings: Readonly<Record<string, unknown>>): this {
    return this.settingsText(JSON.stringify(settings));
  }

  /** The same with any text. In one step, because a runner that looks may look at any time. */
  settingsText(text: string): this {
    mkdirSync(join(this.settingsFile, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(`${this.settingsFile}.new`, text, { mode: 0o600 });
    renameSync(`${this.settingsFile}.new`, this.settingsFile);
    return this;
  }

  /** Enters messages in one go, in this process. */
  async enqueue(...requests: readonly Readonly<Record<string, unknown>>[]): Promise<void> {
    const stdin = requests.map((request) => `${JSON.stringify({ kind: "ping", deliver_to: "seat-1", ...request })}\n`).join("");
    await this.here(["enqueue", "--batch", "-"], { stdout: /./ }, { stdin });
  }

  /** Looks into the database, or changes it by hand. */
  sql<Row>(text: string): Row[] {
    const db = new Database(this.database, { readwrite: true, create: false });
    try {
      db.run("PRAGMA busy_timeout = 10000");
      return db.query<Row, []>(text).all();
    } finally {
      db.close();
    }
  }

  rows(): Dispatch[] {
    return this.sql("SELECT * FROM dispatch_outbox ORDER BY seq");
  }

  row(seq: number): Dispatch {
    const found = this.rows().find((row) => row.seq === seq);
    if (found === undefined) throw new Error(`no row ${seq}`);
    return found;
  }

  history(): Transition[] {
    return this.sql("SELECT * FROM status_transitions WHERE entity_type = 'dispatch' ORDER BY id");
  }

  /** Ends every lease, as if its time were over. Whoever holds one must be gone. */
  ageLeases(): void {
    this.sql("UPDATE dispatch_outbox SET next_attempt_at = next_attempt_at - 3600 WHERE status = 'delivering'");
  }

  /** Makes every pending row due. */
  ageWaits(): void {
    this.sql("UPDATE dispatch_outbox SET next_attempt_at = created_at WHERE status = 'pending'");
  }

  /** The path of a file in it, for scripts. */
  file(name: string): string {
    return join(this.home, name);
  }

  /** The lines of a file that scripts append to. */
  lines(name: string): string[] {
    return existsSync(this.file(name)) ? readFileSync(this.file(name), "utf8").split("\n").filter(Boolean) : [];
  }

  /** Makes the pipe that `WAITS` reads. */
  waits(): this {
    Bun.spawnSync(["mkfifo", this.file("go")]);
    return this;
  }

  /** Ends one command that waits. */
  letGo(): void {
    writeFileSync(this.file("go"), "\n");
  }

  /** Starts `outbox` in the background. */
  background(...args: readonly string[]): Background {
    const stderr = this.file(`stderr-${crypto.randomUUID()}`);
    appendFileSync(stderr, "");
    const streams = { stdin: "ignore", stdout: "ignore", stderr: Bun.file(stderr) } as const;
    const child = Bun.spawn([BINARY, ...args], { cwd: this.home, env: this.env(), ...streams });
    this.#children.push(child);
    return {
      pid: child.pid,
      exited: child.exited.then(() => child.exitCode),
      hasExited: () => child.exitCode !== null || child.signalCode !== null,
      said: () => readFileSync(stderr, "utf8"),
      kill: (signal) => child.kill(signal),
    };
  }

  /** A test that failed leaves no runner behind. */
  override [Symbol.dispose](): void {
    for (const child of this.#children) child.kill("SIGKILL");
    super[Symbol.dispose]();
  }

  /** Runs what is due and answers with the counts; nothing may be said. */
  async drain(): Promise<Readonly<Record<string, number>>> {
    return JSON.parse(await this.run(["run", "--once", "--json"], { stdout: /^\{.*\}\n$/ })) as Readonly<Record<string, number>>;
  }
}

export interface Background {
  readonly pid: number;
  readonly exited: Promise<number | null>;
  hasExited(): boolean;
  /** What it has said so far. */
  said(): string;
  kill(signal: NodeJS.Signals): void;
}

/** Waits for a condition; the test's own time limit ends a wait in vain. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await hostClock.sleep(20);
}

/** Waits until a process has acted on every signal that it was sent: none is pending, and none of its threads has anything to do. */
export async function taken(pid: number): Promise<void> {
  const isPending = (): boolean => /^(?:Shd|Sig)Pnd:\s*0*[1-9a-f]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  const isBusy = (): boolean => readdirSync(`/proc/${pid}/task`).some((thread) => !isAsleep(`/proc/${pid}/task/${thread}/stat`));
  await until(() => !isPending() && !isBusy());
}

function isAsleep(stat: string): boolean {
  try {
    return /\) [SI] /.test(readFileSync(stat, "utf8"));
  } catch {
    return true; // this thread has just ended
  }
}

/** What is still alive in a process group; a dead process that its new parent has not waited for yet is not. */
export function aliveIn(group: number): readonly string[] {
  const { stdout } = Bun.spawnSync(["ps", "-A", "-o", "pgid=,stat=,args="]);
  return stdout
    .toString()
    .split("\n")
    .filter((line) => Number(/^ *([0-9]+) +[^Z ]/.exec(line)?.[1]) === group);
}
