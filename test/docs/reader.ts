/**
 * Somebody who follows the documents: a home with a clone in `~/src/outbox`, the built program, and stand-ins for what must not be
 * reached from a test (the network, the service manager, npm). Nothing of the real home is seen.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const ROOT = join(import.meta.dir, "../..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

/** Answers by the last part of the address: `busy` 503, `gone` 404, all else 200. Notes what it was asked. */
const CURL = `#!/bin/sh
echo "curl $*" >> "$HOME/asked.txt"
case " $* " in *" @- "*) cat >> "$HOME/asked.txt" ;; esac
case " $* " in *"%{http_code}"*) case "$*" in *busy) printf 503 ;; *gone) printf 404 ;; *) printf 200 ;; esac ;; esac
exit 0
`;
/** Accepts only scripts that package.json has. */
const NPM = `#!/bin/sh
[ "$1" = run ] && shift
grep -q "^    \\"$1\\": " package.json || { echo "no script $1" >&2; exit 1; }
`;
/** The `sqlite3` shell, as far as documents use it: statements from stdin, words with a dot for itself. Its errors end it, as `-bail`. */
const SQLITE = `import { Database } from "bun:sqlite";
const db = new Database(process.argv.at(-1), { readwrite: true, create: false });
const statements = (await Bun.stdin.text()).split("\\n").filter((line) => !line.startsWith("."));
db.run(statements.join("\\n"));
`;
const STAND_INS: Readonly<Record<string, string>> = {
  curl: CURL,
  npm: NPM,
  systemctl: `#!/bin/sh\necho "systemctl $*" >> "$HOME/asked.txt"\n`,
  sqlite3: `#!/bin/sh\nexec bun "$HOME/stand-ins/sqlite3.ts" "$@"\n`,
  "sqlite3.ts": SQLITE,
  loginctl: `#!/bin/sh\necho "loginctl $*" >> "$HOME/asked.txt"\n`,
};

export interface Screen {
  readonly code: number | null;
  /** Both streams, as a terminal shows them. */
  readonly text: string;
}

export class Reader implements Disposable {
  readonly home = realpathSync(mkdtempSync(join(tmpdir(), "outbox-docs-")));
  readonly machine: boolean;
  readonly #clone = join(this.home, "src/outbox");
  readonly #env: Record<string, string>;

  /** @param machine whether python3 and sqlite3 are those of this machine; otherwise nothing but Bun is needed */
  constructor(machine = false) {
    this.machine = machine;
    // A settings file in a directory that others can write would be refused, and the umask may allow that.
    chmodSync(this.home, 0o700);
    mkdirSync(this.#clone, { recursive: true });
    for (const name of ["package.json", "src", "types", "dist"]) symlinkSync(join(ROOT, name), join(this.#clone, name));
    for (const [name, text] of Object.entries(STAND_INS))
      if (!machine || !name.startsWith("sqlite3")) this.write(`~/stand-ins/${name}`, text);
    symlinkSync(process.execPath, join(this.home, "stand-ins/bun"));
    const path = [join(this.home, "stand-ins"), join(ROOT, "dist"), "/usr/bin", "/bin"].join(":");
    this.#env = { HOME: this.home, PATH: path, TZ: "UTC" };
  }

  /** Writes a file, as the reader would: a script executable, nothing of it open to others. */
  write(name: string, text: string): void {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, text);
    chmodSync(path, text.startsWith("#!") ? 0o700 : 0o600);
  }

  /** The real path of `~/name`. */
  path(name: string): string {
    return name.replace(/^~\//, `${this.home}/`);
  }

  /** What the stand-ins were asked. */
  asked(): string {
    const notes = this.path("~/asked.txt");
    return existsSync(notes) ? readFileSync(notes, "utf8") : "";
  }

  /** Runs a script in the clone. It fails with its first command that fails. */
  sh(script: string, env: Readonly<Record<string, string>> = this.#env): Screen {
    const child = Bun.spawnSync(["/bin/sh", "-ec", `exec 2>&1\n${script}`], {
      cwd: this.#clone,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    return { code: child.exitCode, text: child.stdout.toString() + child.stderr.toString() };
  }

  /** Runs one line of a crontab as cron does: nothing in the environment but the home and what the table sets. */
  cron(line: string, variables: Readonly<Record<string, string>>): Screen {
    return this.sh(line, { HOME: this.home, ...variables });
  }

  /**
   * Type-checks a file of the reader's, with settings of the reader's own that know nothing of ours: strict, libraries included.
   * `outbox` is a package as package.json says.
   */
  typeCheck(name: string, otherwise: Readonly<Record<string, unknown>> = {}): Screen {
    const project = this.path("~/tsconfig.json");
    mkdirSync(this.path("~/node_modules"), { recursive: true });
    rmSync(this.path("~/node_modules/outbox"), { force: true });
    symlinkSync(this.#clone, this.path("~/node_modules/outbox"));
    const compilerOptions = {
      target: "ESNext",
      lib: ["ESNext"],
      module: "Preserve",
      moduleResolution: "bundler",
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      types: ["bun"],
      typeRoots: [join(ROOT, "node_modules/@types")],
      ...otherwise,
    };
    writeFileSync(project, JSON.stringify({ compilerOptions, files: [this.path(name)] }));
    const child = Bun.spawnSync([process.execPath, TSC, "--noEmit", "-p", project], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    return { code: child.exitCode, text: child.stdout.toString() + child.stderr.toString() };
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}
