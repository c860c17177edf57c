/**
 * Runs the built program as a shell would: its own home, an explicit environment, all three streams. Every stream must
 * be silent unless the test says what it expects on it. `scripts/check.ts` builds dist/outbox before.
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inProcess } from "./in_process.ts";

export const BINARY = join(import.meta.dir, "../../dist/outbox");

/** Memory in larger pages: a start takes a quarter less, and tests have hundreds. Not for what stays: an idle `run` takes more with them. */
export const LARGE_PAGES = { MIMALLOC_ALLOW_THP: "1" };

export interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a run must do. A text must be equal, a pattern must match; left out, the stream must be silent and the code 0. */
export interface Expected {
  readonly code?: number;
  readonly stdout?: string | RegExp;
  readonly stderr?: string | RegExp;
}

export interface Given {
  readonly stdin?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
}

/** A workstation of its own. `using` removes it. */
export class Place implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), "outbox-cli-"));
  /** Where the database is that no flag names. */
  readonly database = join(this.home, ".local/state/outbox/outbox.db");

  env(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return { HOME: this.home, PATH: "/usr/bin:/bin", TZ: "Europe/Berlin", ...more };
  }

  /** Starts the program and waits for its end. */
  async start(args: readonly string[], given: Given = {}): Promise<Result> {
    const child = Bun.spawn([BINARY, ...args], {
      cwd: this.home,
      env: this.env({ ...LARGE_PAGES, ...given.env }),
      stdin: given.stdin === undefined ? "ignore" : new Blob([given.stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    await child.exited;
    return { code: child.exitCode, stdout, stderr };
  }

  /** Runs it and checks all that it did. Returns what it printed, without the last newline. */
  async run(args: readonly string[], expected: Expected = {}, given: Given = {}): Promise<string> {
    return checked(await this.start(args, given), expected);
  }

  /** The same command line in this process: what a test only prepares or looks up, and texts and codes that no process has a part in. */
  async here(args: readonly string[], expected: Expected = {}, given: Given = {}): Promise<string> {
    return checked(await inProcess(args, { cwd: this.home, env: this.env(given.env), stdin: given.stdin }), expected);
  }

  /** What `--json` prints, looked up in this process. */
  async look(args: readonly string[], expected: Expected = {}): Promise<readonly Record<string, unknown>[]> {
    return linesOf(await this.here([...args, "--json"], { stdout: JSON_LINES, ...expected }));
  }

  /** Runs a line of sh with the program as `outbox`. */
  async sh(line: string): Promise<Result> {
    const child = Bun.spawn(["/bin/sh", "-c", line], {
      cwd: this.home,
      env: this.env({ PATH: `${join(BINARY, "..")}:/usr/bin:/bin`, ...LARGE_PAGES }),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    await child.exited;
    return { code: child.exitCode, stdout, stderr };
  }

  /** Runs it with `--json` and reads its lines. */
  async json(args: readonly string[], expected: Expected = {}, given: Given = {}): Promise<readonly Record<string, unknown>[]> {
    return linesOf(await this.run([...args, "--json"], { stdout: JSON_LINES, ...expected }, given));
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

const JSON_LINES = /^(\{.*\}\n)*$/;

function linesOf(text: string): readonly Record<string, unknown>[] {
  return text === "" ? [] : text.split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
}

function checked(result: Result, expected: Expected): string {
  const asked = { code: expected.code ?? 0, stdout: expected.stdout ?? "", stderr: expected.stderr ?? "" };
  const matches = (text: string, wanted: string | RegExp): boolean => (typeof wanted === "string" ? text === wanted : wanted.test(text));
  const right = result.code === asked.code && matches(result.stdout, asked.stdout) && matches(result.stderr, asked.stderr);
  // One comparison of everything shows in a failure what the other stream said.
  expect(right ? asked : result).toEqual(asked as Result);
  return result.stdout.replace(/\n$/, "");
}

export const ID = /^[0-9a-f]{32}\n$/;
