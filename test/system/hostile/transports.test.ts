/** Commands that misbehave, all at once, each on a route of its own: what a runner makes of every exit code, signal and stream. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { CONTROLS } from "../../../src/core/visible.ts";
import type { Dispatch } from "../../../src/core/dispatch.ts";
import { BINARY } from "../../cli/outbox.ts";
import { Workstation } from "../../cli/running.ts";

setDefaultTimeout(60_000);

interface Command {
  readonly does: string;
  /** A line of sh, or the template itself. */
  readonly script: string | readonly string[];
  readonly row: Readonly<Record<string, unknown>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly timeout?: string;
  /** The wait until its next attempt, in seconds. */
  readonly waits?: number;
}

const MIB = "x".repeat(1_000_000);
const delivered = { status: "delivered", attempt: 1, last_error: null };
const failed = (last_error: unknown): Readonly<Record<string, unknown>> => ({
  status: "pending",
  reason_code: "dispatch.pending.retry_backoff",
  attempt: 1,
  last_error,
});
const rejected = { status: "dead_letter", reason_code: "dispatch.dead_letter.rejected", attempt: 1 };
/** Found out when it was started; the attempt was given back. */
const fault = (words: string): Readonly<Record<string, unknown>> => ({
  status: "pending",
  reason_code: "dispatch.pending.config_fault",
  attempt: 0,
  last_error: expect.stringContaining(words) as string,
});
/** Nothing was spent, and nothing is recorded of it. */
const untouched = { status: "pending", reason_code: "dispatch.pending.enqueued", attempt: 0 };
const SHORT = "400ms";
const timedOut = failed(`timed out after ${SHORT}`);

const COMMANDS: readonly Command[] = [
  { does: "never reads a MiB", script: "exit 0", body: { text: MIB }, row: delivered },
  { does: "never reads a MiB and fails", script: "exit 7", body: { text: MIB }, row: failed("exit 7") },
  { does: "closes its stdin before a MiB", script: "exec <&-; exit 0", body: { text: MIB }, row: delivered },
  { does: "reads one byte of a MiB", script: "head -c 1 >/dev/null; exit 0", body: { text: MIB }, row: delivered },
  { does: "reads all of a MiB, byte for byte", script: "exec wc -c", body: { text: MIB }, row: delivered },
  { does: "never reads a MiB and hangs", script: "exec sleep 60", body: { text: MIB }, row: timedOut, timeout: SHORT },
  { does: "closes all its streams and hangs", script: "exec <&- >&- 2>&-; exec sleep 60", row: timedOut, timeout: SHORT },
  { does: "stops itself", script: "kill -STOP $$", row: timedOut, timeout: SHORT },
  {
    does: "forks children that ignore SIGTERM and hold its pipes",
    script: "trap '' TERM HUP; for i in 1 2 3; do sleep 60 & done; wait",
    row: timedOut,
    timeout: SHORT,
  },
  { does: "kills its own group", script: "kill -KILL 0", row: failed("signal SIGKILL") },
  { does: "ends its own group politely", script: "kill -TERM 0; sleep 1", row: failed("signal SIGTERM") },
  { does: "dumps core", script: "ulimit -c 0; kill -SEGV $$", row: failed("signal SIGSEGV") },
  { does: "dies of a signal without a name", script: "kill -40 $$", row: failed(expect.stringMatching(/^signal /)) },
  { does: "prints 100 MB on stdout", script: "head -c 100000000 /dev/zero", row: delivered, timeout: "30s" },
  {
    does: "prints 100 MB on stderr and fails",
    script: "head -c 100000000 /dev/zero | tr '\\0' y >&2; exit 1",
    row: failed(expect.stringMatching(/^y{1,2000}/)),
    timeout: "30s",
  },
  { does: "prints one line without end", script: "tr '\\0' x </dev/zero", row: timedOut, timeout: SHORT },
  {
    does: "prints escape sequences",
    script: "printf '\\033]0;pwned\\007\\033[2J\\233\\r\\nx\\342\\200\\256y' >&2; exit 1",
    row: failed(expect.stringContaining("pwned")),
  },
  { does: "prints noise", script: "head -c 3000 /dev/urandom >&2; exit 1", row: failed(expect.any(String)) },
  { does: "prints NUL", script: "printf 'a\\000b\\000' >&2; exit 1", row: failed(expect.stringMatching(/^a.*b/)) },
  { does: "prints nothing but blanks", script: "printf ' \\n\\t ' >&2; exit 1", row: failed("exit 1") },
  { does: "prints half a character", script: "printf 'caf\\303' >&2; exit 1", row: failed(expect.stringMatching(/^caf/)) },
  { does: "asks for a negative wait", script: "echo retry-after: -5s; exit 1", row: failed("exit 1"), waits: 30 },
  { does: "asks for a wait in words", script: "echo retry-after: tomorrow; exit 1", row: failed("exit 1"), waits: 30 },
  { does: "asks for a bare number", script: "echo retry-after: 5; exit 1", row: failed("exit 1"), waits: 30 },
  { does: "asks for a wait of ten years", script: "echo retry-after: 3650d; exit 1", row: failed("exit 1"), waits: 86_400 },
  {
    does: "asks for a wait that no number holds",
    script: "echo retry-after: $(printf '9%.0s' $(seq 400))d; exit 1",
    row: failed("exit 1"),
    waits: 30,
  },
  {
    does: "asks twice, the last line counts",
    script: "echo retry-after: 1h; echo retry-after: 2h; exit 1",
    row: failed("exit 1"),
    waits: 7_200,
  },
  { does: "asks, and says more after it", script: "echo retry-after: 1h; echo bye; exit 1", row: failed("exit 1"), waits: 30 },
  { does: "asks without a line break", script: "printf 'x\\nretry-after: 1h'; exit 1", row: failed("exit 1"), waits: 3_600 },
  {
    does: "asks after a megabyte in one line",
    script: "head -c 1000000 /dev/zero | tr '\\0' x; printf '\\nretry-after: 1h\\n'; exit 1",
    row: failed("exit 1"),
    waits: 3_600,
  },
  { does: "asks on stderr", script: "echo retry-after: 1h >&2; exit 1", row: failed("retry-after: 1h"), waits: 30 },
  { does: "asks and succeeds", script: "echo retry-after: 1h", row: delivered },
  { does: "is a directory", script: ["/tmp"], row: untouched },
  { does: "is not executable", script: ["/etc/passwd"], row: untouched },
  { does: "is missing", script: ["/nonexistent/command"], row: untouched },
  { does: "lies below a file", script: ["/etc/passwd/x"], row: untouched },
  { does: "has no first line and is no program", script: ["./noise"], row: fault("ENOEXEC") },
  { does: "has no first line and is a script", script: ["./bare"], row: fault("ENOEXEC") },
  { does: "names an interpreter that is missing", script: ["./lost"], row: fault("the interpreter in its first line does not exist") },
  { does: "is empty", script: ["./empty"], row: fault("ENOEXEC") },
  { does: "removes itself", script: ["./fleeting"], row: delivered },
  { does: "replaces itself while it runs", script: ["./changing"], row: delivered },
  { does: "gets a destination that looks like a flag", script: ["/bin/echo", "--", "{deliver_to}"], row: delivered },
  { does: "gets an argument of 200 KB", script: ["/bin/true", "--", "{payload}"], body: { text: "x".repeat(200_000) }, row: rejected },
];

const place = new Workstation();
const rows = new Map<string, Dispatch>();
let told = "";
let maxRss = 0;

beforeAll(async () => {
  const script = (name: string, text: string | Uint8Array): void => {
    writeFileSync(place.file(`.config/outbox/${name}`), text);
    chmodSync(place.file(`.config/outbox/${name}`), 0o755);
  };
  mkdirSync(place.file(".config/outbox"), { recursive: true, mode: 0o700 });
  script(
    "noise",
    Uint8Array.from({ length: 4_096 }, (_, n) => (n * 197 + 31) % 256),
  );
  script("bare", "exit 0\n");
  script("lost", "#!/nonexistent/interpreter\n");
  script("empty", "");
  script("fleeting", '#!/bin/sh\nrm "$0"\nexit 0\n');
  script("changing", '#!/bin/sh\nprintf "#!/bin/sh\\nexit 9\\n" >"$0.new"; chmod 755 "$0.new"; mv "$0.new" "$0"\nexit 0\n');
  const codes = Array.from({ length: 256 }, (_, code) => String(code));
  const routes = COMMANDS.map(
    ({ does, script, timeout = "20s" }) =>
      [does, { notify_template: typeof script === "string" ? ["/bin/sh", "-c", script] : script, timeout }] as const,
  );
  place.settings({
    dispatch: {
      concurrency: 24,
      per_destination: 1_000,
      circuit: { failures: 0 },
      backoff: { base: "30s", jitter: 0, max: "30s" },
      routes: { exit: { notify_template: ["/bin/sh", "-c", 'exit "$1"', "sh", "{deliver_to}"] }, ...Object.fromEntries(routes) },
    },
  });
  const requests = [
    ...codes.map((code) => ({ kind: "exit", deliver_to: code })),
    ...COMMANDS.map(({ does, body = {} }) => ({ kind: does, deliver_to: "--help", body })),
  ];
  const stdin = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  await place.run(["enqueue", "--batch", "-"], { stdout: /./, stderr: /^outbox: the message is longer than [^\n]*\n$/ }, { stdin });
  const child = Bun.spawn([BINARY, "run", "--once"], {
    cwd: place.home,
    env: place.env(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  told = await child.stderr.text();
  await child.exited;
  maxRss = child.resourceUsage()?.maxRSS ?? Number.POSITIVE_INFINITY;
  for (const row of place.rows()) rows.set(row.kind === "exit" ? `exit ${row.deliver_to}` : row.kind, row);
});
afterAll(() => place[Symbol.dispose]());

test("every exit code is what it is: 0 delivered, every other one a failed attempt that names it", () => {
  for (let code = 0; code < 256; code++) {
    const row = rows.get(`exit ${code}`);
    expect(row).toMatchObject(code === 0 ? delivered : failed(`exit ${code}`));
    expect(JSON.parse(row?.metadata ?? "{}")).toMatchObject({ exit: code, signal: null });
  }
});

test.each(COMMANDS)("a command that $does", ({ does, row: expected, waits }) => {
  const row = rows.get(does);
  expect(row).toMatchObject(expected);
  if (waits !== undefined) expect((row?.next_attempt_at ?? 0) - (row?.updated_at ?? 0)).toBeCloseTo(waits, 0);
  expect(row?.last_error?.length ?? 0).toBeLessThanOrEqual(2_000);
});

test("what is told of them is clean, a line each, and names no body", () => {
  expect(told).toMatch(/^(outbox: [^\n]+\n)+$/);
  expect(told.replaceAll("\n", "")).not.toMatch(CONTROLS);
  expect(told).not.toContain("xxxxxxxxxx");
});

test("none of it costs the runner more memory than a few of the bodies", () => {
  expect(maxRss).toBeLessThan(400_000_000);
});

test("ls and show print what commands left without a control character", async () => {
  const dirty = ["prints escape sequences", "prints noise", "prints NUL"].map((does) => String(rows.get(does)?.seq ?? 0));
  for (const args of [
    ["ls", "--limit", "0"],
    ["ls", "--json", "--limit", "0"],
    ["show", ...dirty],
    ["show", "--json", ...dirty],
  ]) {
    const { code, stdout, stderr } = await place.start(args);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.replaceAll("\n", "")).not.toMatch(CONTROLS);
  }
});
