/**
 * A dispatch from enqueue to delivery, for a person to watch: `npm start` calls it after the build. It uses dist/outbox in a
 * directory of its own, prints each command with what it answered, and ends non-zero where that is not what it should be.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const outbox = join(import.meta.dir, "..", "dist", "outbox");
const dir = mkdtempSync(join(tmpdir(), "outbox-demo-"));

const SETTINGS = `database: ./outbox.db
dispatch:
  notify_template: [./deliver, "{deliver_to}"]   # the message comes on stdin
  routes:
    pager_alert: { notify_template: [./fail, "{deliver_to}"] }
`;
/** A real transport: it takes the message and says yes by exiting 0. */
const DELIVER = `#!/bin/sh
{ printf '%s <- ' "$1"; cat; echo; } >>"$(dirname "$0")/delivered.txt"
`;
const FAIL = `#!/bin/sh
echo "no route to $1" >&2
exit 1
`;

try {
  process.exitCode = demo();
} finally {
  rmSync(dir, { recursive: true, force: true });
}

function demo(): number {
  write("settings.yaml", SETTINGS, 0o600);
  write("deliver", DELIVER, 0o700);
  write("fail", FAIL, 0o700);
  say(`Settings: one command takes every message; messages of the kind pager_alert get one that fails.\n`);
  say(indent(SETTINGS));

  const heartbeat = ["enqueue", "--kind", "heartbeat", "--to", "seat-1", "--text", "still here", "--dedup-key", "heartbeat:seat-1:09h"];
  const first = show(heartbeat);
  say("The same key again: nothing new is stored, and the answer is the first id.\n");
  const again = show(heartbeat);
  const alert = show(["enqueue", "--kind", "pager_alert", "--to", "seat-2", "--text", "disk is full", "--dedup-key", "alert:disk:09h"]);
  show(["run", "--once"]);
  show(["ls"]);

  const delivered = existsSync(join(dir, "delivered.txt")) ? readFileSync(join(dir, "delivered.txt"), "utf8") : "";
  say(`What the command received:\n\n${indent(delivered)}`);
  say("The second message failed and waits for its next attempt; `outbox run --once` from cron, or `outbox run`, takes it up.\n");

  const rows = new Map(ask(["ls", "--json"]).map((row) => [row["id"], row]));
  return report([
    ["the duplicate is answered with the first id", /^[0-9a-f]{32}$/.test(first) && again === first],
    ["two dispatches are stored", rows.size === 2],
    ["the heartbeat is delivered", rows.get(first)?.["status"] === "delivered"],
    ["its command received it once", delivered.split("still here").length === 2 && delivered.startsWith("seat-1 <- {")],
    ["the alert waits for its second attempt", rows.get(alert)?.["status"] === "pending" && rows.get(alert)?.["attempt"] === 1],
  ]);
}

/** Runs a command as a person would see it; returns what it printed on stdout. */
function show(args: readonly string[]): string {
  say(`$ outbox ${args.map(quoted).join(" ")}`);
  const { stdout, stderr, exitCode } = run(args);
  say(indent(stdout + stderr));
  if (exitCode !== 0) throw new Error(`demo: outbox ${args[0]} ended with exit code ${exitCode}`);
  return stdout.trim();
}

function ask(args: readonly string[]): Readonly<Record<string, unknown>>[] {
  const lines = run(args).stdout.trim().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

function run(args: readonly string[]): { stdout: string; stderr: string; exitCode: number } {
  // Only what it needs: nothing of the person's own outbox may be found, let alone used.
  const env = { PATH: process.env["PATH"] ?? "", HOME: dir, TZ: process.env["TZ"] ?? "", OUTBOX_CONFIG: join(dir, "settings.yaml") };
  const done = Bun.spawnSync([outbox, ...args], { cwd: dir, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  return { stdout: done.stdout.toString(), stderr: done.stderr.toString(), exitCode: done.exitCode };
}

function report(expected: readonly (readonly [sentence: string, holds: boolean])[]): number {
  const wrong = expected.filter(([, holds]) => !holds);
  for (const [sentence] of wrong) console.error(`demo: this does not hold: ${sentence}`);
  return wrong.length === 0 ? 0 : 1;
}

function write(name: string, text: string, mode: number): void {
  writeFileSync(join(dir, name), text);
  // A file that others may write would be refused, and the person's umask may allow that.
  chmodSync(join(dir, name), mode);
}

function say(text: string): void {
  console.log(text);
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}

function quoted(word: string): string {
  return /^[\w:./-]+$/.test(word) ? word : `'${word}'`;
}
