/** A workstation of its own for the built program, that can be copied: nothing in it names its place. */
import { Database } from "bun:sqlite";
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { movesOf, notesOf, type Row, rowsOf, unclaimed } from "./laws.ts";

export const BINARY = join(import.meta.dir, "../../dist/outbox");

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** It was still there after its time, and was killed for it. */
  readonly hung: boolean;
}

export interface Given {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What starts the program: strace, sh. */
  readonly under?: readonly string[];
}

/** A process that takes longer hangs. */
const LIMIT_MS = 60_000;

/** Notes its start and its end, and ends with the code in the file `how`; `$3` is how long it takes. */
const COMMAND =
  'echo "start $1 $2 $$" >> "$HOME/log"; [ "$3" = 0 ] || sleep "$3"; read -r how < "$HOME/how"; echo "end $1 $2 $$ $how" >> "$HOME/log"; exit "$how"';

export interface Terms {
  readonly seconds?: number;
  readonly maxAttempts?: number;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly dispatch?: Readonly<Record<string, unknown>>;
}

export class Site {
  readonly home: string;
  readonly database: string;

  constructor(home: string) {
    this.home = home;
    this.database = join(home, ".local/state/outbox/outbox.db");
  }

  /** A new one under a directory, with settings: base 0 makes failures due at once, circuits stay out of the way. */
  static make(under: string, terms: Terms = {}): Site {
    const site = new Site(mkdtempSync(join(under, "site-")));
    site.settings(terms);
    site.commandsEnd(0);
    return site;
  }

  settings({ seconds = 0, maxAttempts = 3, settings = {}, dispatch = {} }: Terms): void {
    const directory = join(this.home, ".config/outbox");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const notify_template = ["/bin/sh", "-c", COMMAND, "sh", "{id}", "{attempt}", String(seconds)];
    const rest = { max_attempts: maxAttempts, backoff: { base: 0 }, circuit: { failures: 0 }, permanent_exit_codes: [78] };
    const text = JSON.stringify({ dispatch: { notify_template, ...rest, ...dispatch }, ...settings });
    writeFileSync(join(directory, "settings.yaml"), text, { mode: 0o600 });
  }

  /** With which code the commands end from now on. */
  commandsEnd(code: number): void {
    writeFileSync(join(this.home, "how"), `${code}\n`);
  }

  copy(): Site {
    const home = mkdtempSync(`${this.home}-`);
    cpSync(this.home, home, { recursive: true });
    return new Site(home);
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  env(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return { HOME: this.home, PATH: "/usr/bin:/bin", TZ: "UTC", ...more };
  }

  async run(args: readonly string[], { stdin, env, under = [] }: Given = {}): Promise<Ended> {
    const child = Bun.spawn([...under, BINARY, ...args], {
      cwd: this.home,
      env: this.env(env),
      stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    });
    const started = performance.now();
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    await child.exited;
    const signal = child.signalCode === null ? null : String(child.signalCode);
    const hung = signal === "SIGKILL" && performance.now() - started >= LIMIT_MS;
    return { code: child.exitCode, signal, stdout, stderr, hung };
  }

  /** The same, where anything but silence on stderr and exit 0 is a fault of the test itself. */
  async done(args: readonly string[], given: Given = {}): Promise<string> {
    const ended = await this.run(args, given);
    if (ended.code !== 0) throw new Error(`outbox ${args.join(" ")}: exit ${ended.code} ${ended.signal}\n${ended.stderr}`);
    return ended.stdout;
  }

  /** Looks into the database, or changes it by hand. */
  look<Answer>(what: (db: Database) => Answer): Answer {
    const db = new Database(this.database, { readwrite: true, create: false, strict: true });
    try {
      db.run("PRAGMA busy_timeout = 10000");
      return what(db);
    } finally {
      db.close();
    }
  }

  rows(): Row[] {
    return existsSync(this.database) && this.look((db) => db.query("SELECT 1 FROM sqlite_schema WHERE name = 'dispatch_outbox'").get())
      ? this.look(rowsOf)
      : [];
  }

  note(text: string): void {
    appendFileSync(join(this.home, "log"), text);
  }

  log(): string {
    const path = join(this.home, "log");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** What the commands say against the history. */
  unclaimed(): string[] {
    // The log first: a claim is in the database before its command is in the log.
    const notes = notesOf(this.log());
    return this.look((db) => unclaimed(rowsOf(db), movesOf(db), notes));
  }
}

/** The ids in what was printed. */
export function idsIn(text: string): string[] {
  return text.match(/\b[0-9a-f]{32}\b/g) ?? [];
}
