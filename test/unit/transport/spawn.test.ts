/** The transport against real small commands. They run at the same time, so that their waits add up to a few seconds. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Outcome, Report } from "../../../src/core/outcome.ts";
import { hostClock } from "../../../src/host.ts";
import { createSpawnTransport } from "../../../src/transport/spawn.ts";
import type { Job } from "../../../src/transport/transport.ts";

const transport = createSpawnTransport(hostClock);
const home = realpathSync(mkdtempSync(join(tmpdir(), "outbox-spawn-")));
afterAll(() => rmSync(home, { recursive: true }));

const PATH = process.env["PATH"] ?? "";
/** How long a lease outlives its command's timeout. A result takes 2.5 s of it at most, and a loaded machine something more. */
const AFTER_TIMEOUT_MS = 5_000;
setDefaultTimeout(20_000);

function job(change: Partial<Job> = {}): Job {
  return {
    argv: ["true"],
    env: { PATH },
    stdin: new Uint8Array(),
    cwd: home,
    timeoutMs: 15_000,
    outputLimit: 8_192,
    permanentExitCodes: [64],
    ...change,
  };
}

const NEVER = new AbortController().signal;

function run(change: Partial<Job>, kill: AbortSignal = NEVER, now: AbortSignal = NEVER): Promise<Outcome> {
  return transport.run(job(change), kill, now);
}

function sh(script: string, change: Partial<Job> = {}, kill?: AbortSignal, now?: AbortSignal): Promise<Outcome> {
  return run({ argv: ["sh", "-c", script], ...change }, kill, now);
}

function reportOf(outcome: Outcome): Report {
  if ("report" in outcome && outcome.report !== null) return outcome.report;
  throw new Error(`no report: ${JSON.stringify(outcome)}`);
}

/** What is still alive in a process group; a dead process that its new parent has not waited for yet is not. */
function aliveIn(group: number): readonly string[] {
  const { stdout } = Bun.spawnSync(["ps", "-A", "-o", "pgid=,stat=,args="]);
  return stdout
    .toString()
    .split("\n")
    .filter((line) => Number(/^ *([0-9]+) +[^Z ]/.exec(line)?.[1]) === group);
}

/** Runs a script that begins by printing its group and must be ended at its timeout. */
async function timeOut(script: string): Promise<{ outcome: Outcome; report: Report; tookMs: number; left: readonly string[] }> {
  const timeoutMs = 300;
  const startedAt = performance.now();
  const outcome = await sh(`echo $$; ${script}`, { timeoutMs });
  const tookMs = performance.now() - startedAt;
  const report = reportOf(outcome);
  const left = aliveIn(Number.parseInt(report.head, 10));
  expect(outcome).toMatchObject({ kind: "failed", error: "timed out after 300ms" });
  expect(tookMs).toBeGreaterThanOrEqual(timeoutMs);
  expect(tookMs).toBeLessThan(timeoutMs + AFTER_TIMEOUT_MS);
  expect(left).toEqual([]);
  return { outcome, report, tookMs, left };
}

/** Waits for a condition; the test's own time limit ends a wait in vain. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await hostClock.sleep(5);
}

/** Makes an executable file and gives its path. */
function script(name: string, text: string, mode = 0o755): string {
  writeFileSync(join(home, name), text);
  chmodSync(join(home, name), mode);
  return join(home, name);
}

describe("a command that ends by itself", () => {
  test.concurrent("takes its message with exit 0", async () => {
    const outcome = await sh("echo out; echo err >&2");
    expect(outcome).toMatchObject({ kind: "ok", report: { exit: 0, signal: null, tail: "" } });
    expect(reportOf(outcome).head.split("\n").toSorted()).toEqual(["", "err", "out"]);
    expect(reportOf(outcome).durationMs).toBeWithin(0, 15_000);
  });
  test.concurrent("fails with its stderr, else its exit code", async () => {
    expect(await sh("echo '  no route  ' >&2; exit 3")).toMatchObject({ kind: "failed", error: "no route", report: { exit: 3 } });
    expect(await sh("exit 3")).toMatchObject({ kind: "failed", error: "exit 3", retryAfterMs: null });
  });
  test.concurrent("is rejected with a permanent exit code", async () => {
    expect(await sh("exit 64")).toMatchObject({ kind: "rejected", error: "exit 64", report: { exit: 64 } });
  });
  test.concurrent("names its own wait", async () => {
    expect(await sh("echo busy; echo retry-after: 90s; exit 1")).toMatchObject({ kind: "failed", retryAfterMs: 90_000 });
  });
  test.concurrent("can die by a signal, also of one that it sends to its whole group", async () => {
    expect(await sh("kill -SEGV $$")).toMatchObject({ kind: "failed", error: "signal SIGSEGV", report: { exit: null, signal: "SIGSEGV" } });
    expect(await sh("sleep 30 & kill -KILL 0")).toMatchObject({ kind: "failed", error: "signal SIGKILL" });
  });
  test.concurrent("reads its stdin byte for byte, or leaves 1 MiB of it unread", async () => {
    const stdin = new Uint8Array(1_048_576).map((_, index) => index % 256);
    const sum = new Bun.CryptoHasher("md5").update(stdin).digest("hex");
    expect(reportOf(await sh("md5sum || md5", { stdin })).head).toStartWith(sum);
    expect(await sh("exit 0", { stdin })).toMatchObject({ kind: "ok" });
    expect(await sh("exec 0<&-; exit 0", { stdin })).toMatchObject({ kind: "ok" });
    expect(await sh("cat", { stdin: new Uint8Array() })).toMatchObject({ kind: "ok", report: { head: "" } });
  });
  test.concurrent("is given its environment, its arguments and its directory, and nothing else", async () => {
    const argv = [
      "sh",
      "-c",
      'pwd; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort; printf "<%s>" "$@"',
      "x",
      "",
      " a\n$(id)",
      "--",
    ];
    const outcome = await run({ argv, env: { PATH, OUTBOX_ID: "a b\nc" } });
    expect(reportOf(outcome).head).toBe(`${home}\nOUTBOX_ID=a b\nPATH=${PATH}\nc\n<>< a\n$(id)><-->`);
  });
  test.concurrent("leads a group of its own", async () => {
    const [pid, group] = reportOf(await sh("echo $$; ps -o pgid= -p $$"))
      .head.trim()
      .split(/\s+/);
    expect(pid).toBe(String(group));
  });
  test.concurrent("goes on in / when its directory is gone", async () => {
    expect(reportOf(await sh("pwd", { cwd: join(home, "gone") })).head).toBe("/\n");
    const file = join(home, "file");
    writeFileSync(file, "");
    expect(reportOf(await sh("pwd", { cwd: file })).head).toBe("/\n");
  });
  test.concurrent("is let go although a process that it left behind holds its pipes, and that process lives on", async () => {
    const outcome = await sh("echo $$; sleep 30 & exit 0");
    const { head, durationMs } = reportOf(outcome);
    expect(outcome.kind).toBe("ok");
    expect(durationMs).toBeLessThan(2_000);
    expect(aliveIn(Number(head))).toHaveLength(1);
    process.kill(-Number(head), "SIGKILL");
  });
  test.concurrent("never keeps our own process waiting for what it left behind", async () => {
    const child = Bun.spawn([process.execPath, "test/fixtures/transport/leave.ts"], { stdout: "pipe" });
    const group = Number(await new Response(child.stdout).text());
    expect(await child.exited).toBe(0);
    expect(aliveIn(group)).toHaveLength(1);
    process.kill(-group, "SIGKILL");
  });
});

describe("a command that is over its time", () => {
  test.concurrent("is ended when it hangs", async () => {
    const { report } = await timeOut("exec sleep 30");
    expect(report).toMatchObject({ exit: null, signal: "SIGTERM" });
  });
  test.concurrent("is ended with all that it started", async () => {
    await timeOut("(sleep 30 & sleep 30) & sleep 30");
  });
  test.concurrent("is killed when it ignores SIGTERM", async () => {
    const { report, tookMs } = await timeOut("trap '' TERM; while :; do sleep 0.1; done");
    expect(report.signal).toBe("SIGKILL");
    expect(tookMs).toBeGreaterThan(2_000);
  });
  test.concurrent("has timed out although it answers SIGTERM with exit 0", async () => {
    const { report } = await timeOut("trap 'exit 0' TERM; while :; do sleep 0.05; done");
    expect(report).toMatchObject({ exit: 0, signal: null });
  });
  test.concurrent("is ended when it has stopped itself", async () => {
    const { report } = await timeOut("trap 'echo went on; exit' TERM; kill -STOP $$");
    expect(report).toMatchObject({ exit: 0, head: expect.stringContaining("went on") });
  });
  test.concurrent("leaves nobody behind who ignores SIGTERM", async () => {
    await timeOut("(trap '' TERM; while :; do sleep 0.1; done) & exec sleep 30");
  });
  test.concurrent("gives what it started the time to end in order, also when it goes first itself", async () => {
    const { report } = await timeOut("(trap 'sleep 0.2; echo cleaned up; exit' TERM; while :; do sleep 0.05; done) & exec sleep 30");
    expect(report.head).toContain("cleaned up");
  });
  test.concurrent("is ended and kept within bounds when it floods both streams", async () => {
    const { report } = await timeOut("yes out & yes err >&2");
    expect(Buffer.byteLength(report.head)).toBe(4_096);
    expect(Buffer.byteLength(report.tail)).toBe(4_096);
  });
  test("has not timed out when only the event loop was late", async () => {
    const running = sh("exit 0", { timeoutMs: 200 });
    Bun.sleepSync(400);
    expect(await running).toMatchObject({ kind: "ok" });
  });
});

test.concurrent("a program is called by the name that the template gives it, whatever file it was found in", async () => {
  expect(reportOf(await sh("ps -o args= -p $$; exit 0")).head).toStartWith("sh -c ");
});

describe("memory", () => {
  test("stays bounded while both streams are flooded", async () => {
    await sh("yes | head -c 20000000");
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 10);
    await timeOut("yes & yes >&2");
    expect(await sh("head -c 100000000 /dev/zero")).toMatchObject({ kind: "ok", report: { head: "", tail: "" } });
    clearInterval(watch);
    expect((peak - before) / 1_048_576).toBeLessThan(100);
  });
});

describe("the kill signal", () => {
  /** Ends it once the command has made the file that it is given; at once, or as soon as it has answered SIGTERM with another file. */
  async function killWhenReady(
    name: string,
    script: string,
    hurry: "never" | "at once" | "once asked" = "never",
  ): Promise<{ outcome: Outcome; tookMs: number }> {
    const [kill, now] = [new AbortController(), new AbortController()];
    const ready = join(home, name);
    const running = sh(`${script}; : > ${ready}; while :; do sleep 0.05; done`, {}, kill.signal, now.signal);
    await until(() => existsSync(ready));
    const killedAt = performance.now();
    if (hurry === "at once") now.abort();
    kill.abort();
    if (hurry === "once asked") {
      await until(() => existsSync(`${ready}.asked`));
      now.abort();
    }
    const outcome = await running;
    return { outcome, tookMs: performance.now() - killedAt };
  }
  test.concurrent("ends the group in order, and the attempt has failed whatever its exit code is", async () => {
    const { outcome } = await killWhenReady("orderly", "echo $$; trap 'exit 0' TERM");
    expect(outcome).toMatchObject({ kind: "failed", error: "stopped by the runner before it finished", report: { exit: 0 } });
    expect(aliveIn(Number(reportOf(outcome).head))).toEqual([]);
  });
  test.concurrent.each([
    ["with it", "at once", "now", "trap '' TERM"],
    ["after it", "once asked", "later", `trap ': > ${join(home, "later.asked")}' TERM`],
  ] as const)("kills at once when nothing is to be waited for, said %s", async (_, hurry, name, trap) => {
    const { outcome, tookMs } = await killWhenReady(name, `echo $$; ${trap}`, hurry);
    expect(outcome).toMatchObject({ kind: "failed", report: { signal: "SIGKILL" } });
    expect(aliveIn(Number(reportOf(outcome).head))).toEqual([]);
    expect(tookMs).toBeLessThan(2_000);
  });
  test.concurrent("keeps a command from starting", async () => {
    expect(await sh("exit 0", {}, AbortSignal.abort())).toMatchObject({ kind: "released", exhausted: false });
  });
});

describe("a command that cannot start", () => {
  test("is a fault that names it and the PATH that was used", async () => {
    const error = `no command "nope" in PATH (${home}:/bin)`;
    expect(await run({ argv: ["nope"], env: { PATH: `${home}:/bin` } })).toEqual({ kind: "fault", error });
    expect(transport.fault("nope", { PATH: `${home}:/bin` })).toBe(error);
    expect(transport.fault("sh", { PATH })).toBeNull();
  });
  test.each([
    ["is not executable", (): string => script("plain", "#!/bin/sh\n", 0o644), "is not executable by this user (EACCES)"],
    ["is a directory", (): string => home, "is not a file"],
    [
      "has no interpreter",
      (): string => script("interpreter", "#!/nope/sh\n"),
      "the interpreter in its first line does not exist (ENOENT)",
    ],
    ["has no first line", (): string => script("lineless", "echo hi\n"), "nor a script with a #! line (ENOEXEC)"],
    ["has a directory for an interpreter", (): string => script("denied", "#!/\n"), "permission denied"],
    ["has a name that is too long", (): string => `/${"x".repeat(300)}`, "ENAMETOOLONG"],
  ])("is a fault when it %s", async (_, make, why) => {
    const path = make();
    const outcome = await run({ argv: [path] });
    expect(outcome).toEqual({ kind: "fault", error: expect.stringContaining(path) });
    expect("error" in outcome && outcome.error).toContain(why);
  });
  test.each([
    ["an argument with a NUL", { argv: ["true", "a", "b\0c"] }, "rejected", "argument 2 contains a NUL"],
    ["an argument of 128 KiB", { argv: ["true", "x".repeat(131_072)] }, "rejected", "the envelope goes to stdin"],
    ["an argument of 128 KiB in two-byte characters", { argv: ["true", "é".repeat(65_536)] }, "rejected", "131072 bytes"],
    ["arguments that are too long together", { argv: ["true", ...Array<string>(40).fill("x".repeat(131_071))] }, "rejected", "(E2BIG)"],
    ["a value of the row with a NUL", { env: { PATH, OUTBOX_KIND: "\0" } }, "rejected", "OUTBOX_KIND contains a NUL"],
    ["a value of the row of 128 KiB", { env: { PATH, OUTBOX_KIND: "x".repeat(131_060) } }, "rejected", "OUTBOX_KIND has 131072 bytes"],
    ["a setting of 128 KiB", { env: { PATH, NAME: "x".repeat(131_072) } }, "fault", "NAME has 131077 bytes"],
  ])("because of %s costs its dispatch no more than it must", async (_, change, kind, why) => {
    const outcome = await run(change);
    expect<string>(outcome.kind).toBe(kind);
    expect("error" in outcome && outcome.error).toContain(why);
  });
  test("takes the longest argument and the longest value that there may be", async () => {
    expect(await run({ argv: ["true", "x".repeat(131_071)], env: { PATH, OUTBOX_KIND: "x".repeat(131_059) } })).toMatchObject({
      kind: "ok",
    });
  });
  test("is released when the machine has no file left to open", () => {
    const command = `ulimit -n 40; exec "$0" test/fixtures/transport/exhaust.ts`;
    const { stdout } = Bun.spawnSync(["sh", "-c", command, process.execPath]);
    expect(JSON.parse(stdout.toString())).toEqual({
      first: { kind: "released", error: "the machine has no room for another command (EMFILE)", exhausted: true },
      kinds: ["ok", "released"],
      after: "ok",
    });
  });
});

describe("open files", () => {
  const open = (): number => readdirSync(process.platform === "linux" ? "/proc/self/fd" : "/dev/fd").length;
  test("are closed after commands that started, did not start, or left somebody behind", async () => {
    await sh("exit 0");
    const before = open();
    for (let n = 0; n < 20; n += 1) {
      await sh("exit 1");
      await run({ argv: [script("lineless", "echo hi\n")], stdin: new Uint8Array(1_000) });
    }
    const held = reportOf(await sh("echo $$; sleep 30 & exit 0"));
    process.kill(-Number(held.head), "SIGKILL");
    await until(() => open() <= before);
  });
  test("do not add up over commands with a stdin", async () => {
    const before = open();
    let most = 0;
    for (let n = 0; n < 200; n += 1) {
      await run({ stdin: new Uint8Array(1_000) });
      most = Math.max(most, open());
    }
    expect(most - before).toBeLessThan(80);
  });
});
