/**
 * `outbox inbox run`, killed at each of its calls to the kernel that write, start or wait, and at a terminal. `scripts/system.ts` runs
 * this; it needs strace and python3.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { BINARY } from "../cli/outbox.ts";
import { Workstation } from "../cli/running.ts";

setDefaultTimeout(300_000);

const CALLS =
  "pwrite64,pwritev,pwritev2,write,writev,fsync,fdatasync,ftruncate,fallocate,unlink,unlinkat,rename,renameat,renameat2,vfork,clone,clone3,wait4,waitid,pidfd_open,close,munmap,exit_group";
const MESSAGE = "0a".repeat(16);

interface Ended {
  readonly code: number | null;
  readonly killed: boolean;
}

/** Runs it under strace for this consumer. Its output ends when its command, too, is gone. */
async function traced(at: Workstation, consumer: string, options: readonly string[]): Promise<Ended> {
  const run = [BINARY, "inbox", "run", MESSAGE, "--consumer", consumer, "--", "sh", "-c", `echo ${consumer} >> done`];
  const child = Bun.spawn(["strace", "-qq", "-o", at.file("calls"), ...options, ...run], {
    cwd: at.home,
    env: at.env(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  await child.stdout.text();
  await child.exited;
  return { code: child.exitCode, killed: child.signalCode === "SIGKILL" };
}

test("killed at any of its calls, it records no success that was not, and forgets none that it answered", async () => {
  using at = new Workstation();
  await at.enqueue({});
  expect(await traced(at, "whole", ["-e", `trace=${CALLS}`])).toEqual({ code: 0, killed: false });
  const counts = new Map<string, number>();
  for (const [, call = ""] of readFileSync(at.file("calls"), "utf8").matchAll(/^([a-z0-9_]+)\(/gm))
    counts.set(call, (counts.get(call) ?? 0) + 1);
  const cuts = [...counts].flatMap(([call, times]) => Array.from({ length: times }, (_, nth) => [call, nth + 1] as const));
  let [killed, unmarked, marked] = [0, 0, 0];
  for (const [call, nth] of cuts) {
    const consumer = `${call}-${nth}`;
    const ended = await traced(at, consumer, ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`]);
    const done = (): number => at.lines("done").filter((line) => line === consumer).length;
    const entry = at.sql<{ done_at: number | null }>(`SELECT done_at FROM dispatch_inbox WHERE consumer = '${consumer}'`)[0];
    const isRecorded = entry !== undefined && entry.done_at !== null;
    const ran = done();
    // A record means that it was done; an answer means that there is a record.
    expect({ consumer, wrong: isRecorded && ran !== 1 }).toEqual({ consumer, wrong: false });
    expect({ consumer, wrong: ended.code === 0 && !isRecorded }).toEqual({ consumer, wrong: false });
    // Whoever comes next is not kept out, and does the work if and only if it is not recorded.
    await at.run(["inbox", "run", MESSAGE, "--consumer", consumer, "--", "sh", "-c", `echo ${consumer} >> done`]);
    await at.run(["inbox", "run", MESSAGE, "--consumer", consumer, "--", "false"]);
    expect({ consumer, ran: done() }).toEqual({ consumer, ran: ran + (isRecorded ? 0 : 1) });
    killed += ended.killed ? 1 : 0;
    if (ended.killed && ran === 1) [marked, unmarked] = isRecorded ? [marked + 1, unmarked] : [marked, unmarked + 1];
  }
  // It looked where it had to: before and after the work, and before and after its record.
  expect(killed).toBeGreaterThan(20);
  expect([unmarked > 0, marked > 0, killed > unmarked + marked]).toEqual([true, true, true]);
  expect(at.sql("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
});

test("^C of the terminal reaches the command once: it is in the same foreground group", async () => {
  using at = new Workstation();
  await at.enqueue({});
  const counting = ["sh", "-c", "trap 'echo INT >> heard' INT; echo $$ >> started; while [ ! -e go ]; do sleep 0.02; done; exit 4"];
  const program = `
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while not os.path.exists("started"): time.sleep(0.01)
os.write(terminal, b"\\x03")
while not os.path.exists("heard"): time.sleep(0.01)
open("go", "w").close()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`;
  const child = Bun.spawn(["python3", "-c", program, BINARY, "inbox", "run", MESSAGE, "--", ...counting], {
    cwd: at.home,
    env: at.env(),
    stdin: "ignore",
    stdout: "ignore",
  });
  expect(await child.exited).toBe(4);
  expect(at.lines("heard")).toEqual(["INT"]);
});
