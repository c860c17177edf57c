/** `outbox inbox run`: a command once for each message, however often it comes and whatever is killed. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, LARGE_PAGES } from "./outbox.ts";
import { type Background, sh, until, Workstation } from "./running.ts";

setDefaultTimeout(30_000);

const MESSAGE = "0a".repeat(16);
const RUN = ["inbox", "run", MESSAGE, "--"];
/** Leaves a line in `done` each time it runs. */
const WORK = ["sh", "-c", "echo done >> done"];
/** The same where the test's own process starts it, which is in another directory. */
const work = (at: Workstation): string[] => ["sh", "-c", `echo done >> ${at.file("done")}`];

/** A place with a database in it. */
async function place(): Promise<Workstation> {
  const made = new Workstation();
  await made.enqueue({});
  return made;
}

interface Entry {
  readonly consumer: string;
  readonly dispatch_id: string;
  readonly done_at: number | null;
}
const entries = (at: Workstation): Entry[] => at.sql("SELECT consumer, dispatch_id, done_at FROM dispatch_inbox ORDER BY 1, 2");

/** A command that says that it has started, and goes on when `go` is there. */
const slow = (then = "exit 0"): string[] => ["sh", "-c", `echo $$ >> started; while [ ! -e go ]; do sleep 0.1; done; ${then}`];
async function started(at: Workstation, command = slow()): Promise<Background> {
  const child = at.background(...RUN, ...command);
  await until(() => at.lines("started").length > 0);
  return child;
}

describe("inbox run", () => {
  test("runs the command once: afterwards it does nothing, in silence, and exits 0", async () => {
    using at = await place();
    await at.run([...RUN, "sh", "-c", "echo out; echo err >&2"], { stdout: "out\n", stderr: "err\n" });
    await at.run([...RUN, "sh", "-c", "echo again; exit 7"]);
    for (let n = 0; n < 2; n++) await at.here([...RUN, "sh", "-c", "exit 7"]);
    expect(entries(at)).toEqual([{ consumer: "default", dispatch_id: MESSAGE, done_at: expect.any(Number) }]);
  });

  test("is once for each consumer, and the number of a message is its id", async () => {
    using at = await place();
    const id = at.row(1).id;
    for (const name of ["1", id]) await at.here(["inbox", "run", name, "--", ...work(at)]);
    await at.run(["inbox", "run", "--consumer", "audit", "--", ...WORK], {}, { env: { OUTBOX_ID: id } });
    expect(at.lines("done")).toHaveLength(2);
    expect(entries(at).map(({ consumer, dispatch_id }) => [consumer, dispatch_id])).toEqual([
      ["audit", id],
      ["default", id],
    ]);
  });

  test.each([
    ["exit 1", 1],
    ["exit 75", 75],
    ["exit 255", 255],
    ["kill -KILL $$", 137],
    ["kill -TERM $$", 143],
  ])("after %j it exits as the command did (%d), and runs it again", async (end, code) => {
    using at = await place();
    const command = ["sh", "-c", `echo done >> ${at.file("done")}; ${end}`];
    await at.run([...RUN, ...command], { code });
    await at.here([...RUN, ...command], { code });
    expect(at.lines("done")).toHaveLength(2);
    expect(entries(at)).toEqual([]);
    await at.here([...RUN, ...work(at)]);
    await at.here([...RUN, ...command]);
    expect(at.lines("done")).toHaveLength(3);
  });

  test("passes all three streams through, byte for byte", async () => {
    using at = await place();
    const bytes = crypto.getRandomValues(new Uint8Array(65_536)).toHex();
    const stdin = Buffer.concat(Array.from({ length: 20 }, () => Buffer.from(bytes, "hex")));
    const child = Bun.spawn([BINARY, ...RUN, "sh", "-c", "cat > all; cat all; cat all >&2"], {
      cwd: at.home,
      env: at.env(),
      stdin: new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.bytes(), child.stderr.bytes()]);
    expect([await child.exited, Buffer.compare(stdout, stdin), Buffer.compare(stderr, stdin)]).toEqual([0, 0, 0]);
  });

  test("everything after -- is the command's, to the letter", async () => {
    using at = await place();
    const odd = ["--help", "--", "-h", "", " a\n", "$HOME *", "--db=x", "é😀"];
    await at.run([...RUN, "printf", "[%s]", ...odd], { stdout: odd.map((word) => `[${word}]`).join("") });
  });

  test("the command has our environment, as it is, and our directory", async () => {
    using at = await place();
    const env = { OUTBOX_ID: MESSAGE, OUTBOX_ATTEMPT: "3", OUTBOX_DB: at.database, ODD: "a\tb" };
    const shown = await at.run(["inbox", "run", "--", "sh", "-c", "env; pwd"], { stdout: /./ }, { env });
    const lines = shown.split("\n").filter((line) => !/^(PWD|_|SHLVL|OLDPWD)=/.test(line));
    const wanted = Object.entries(at.env({ ...LARGE_PAGES, ...env })).map(([name, value]) => `${name}=${value}`);
    expect(lines.toSorted()).toEqual([...wanted, at.home].toSorted());
  });

  test("a byte of a variable that is no UTF-8 reaches the command", async () => {
    using at = await place();
    const line = `ODD=$(printf 'a\\377b') outbox ${RUN.join(" ")} sh -c 'printf %s "$ODD" | od -An -tx1'`;
    expect(await at.sh(line)).toEqual({ code: 0, stdout: " 61 ff 62\n", stderr: "" });
  });

  test("neither it nor its command holds the database open while the command runs", async () => {
    using at = await place();
    const open = await at.run([...RUN, "sh", "-c", "ls -l /proc/$PPID/fd 2>&- || lsof -p $PPID; echo; ls /dev/fd"], { stdout: /./ });
    const [ours = "", theirs = ""] = open.split("\n\n");
    expect(ours.length).toBeGreaterThan(50);
    expect(ours).not.toContain("outbox.db");
    expect(theirs).toBe("0\n1\n2\n3"); // the last is that of ls itself
  });

  test.each([
    [["nosuch"], 127, 'no command "nosuch" in PATH (/usr/bin:/bin)'],
    [["./nosuch"], 127, "./nosuch does not exist (ENOENT)"],
    [["/"], 126, "/ is not a file"],
    [["./text"], 126, "./text is not executable by this user (EACCES)"],
    [["./odd"], 126, "./odd cannot be started: it is neither a program for this machine nor a script with a #! line (ENOEXEC)"],
    [["./lost"], 126, "./lost cannot be started: the interpreter in its first line does not exist (ENOENT)"],
  ])("says why %p cannot be started, exits as a shell does, and keeps nothing", async ([name = ""], code, why) => {
    using at = await place();
    for (const [file, text] of Object.entries({ text: "x", odd: "x", lost: "#!/no/such\n" })) writeFileSync(at.file(file), text);
    for (const file of ["odd", "lost"]) chmodSync(at.file(file), 0o755);
    await at.run([...RUN, name], { code, stderr: `outbox: ${why}; mend that and call again, for nothing was run\n` });
    expect(entries(at)).toEqual([]);
  });

  test("makes no database, and changes none of an older schema", async () => {
    using at = new Workstation();
    await at.here([...RUN, ...work(at)], { code: 1, stderr: /^outbox: no database at / });
    expect(existsSync(at.database)).toBe(false);
    const old = at.file("old.db");
    copyFileSync(join(import.meta.dir, "../fixtures/releases/0.1.0/outbox.db"), old);
    const before = readFileSync(old);
    await at.here(["--db", old, ...RUN, ...work(at)], {
      code: 78,
      stderr: /has schema 1, this outbox needs [0-9]+; run: outbox migrate\n$/,
    });
    expect(readFileSync(old).equals(before)).toBe(true);
    expect(at.lines("done")).toEqual([]);
  });

  test.each([
    [
      ["inbox", "run", "--", "true"],
      {},
      2,
      "outbox: inbox run needs ID, since OUTBOX_ID is not set; write the number that ls prints; only a delivered command has its own in the environment\n",
    ],
    [
      ["inbox", "run", "--", "true"],
      { OUTBOX_ID: "zz" },
      2,
      'outbox: OUTBOX_ID "zz" is no ID; write the 32 hex digits, or the number that ls prints\n',
    ],
    [["inbox", "run", "zz", "--", "true"], {}, 2, 'outbox: "zz" is no ID; write the 32 hex digits, or the number that ls prints\n'],
    [["inbox", "run", "9", "--", "true"], {}, 1, /^outbox: there is no message 9 in .*; see outbox ls\n$/],
    [["inbox", "run", "1", "--consumer", "x".repeat(256), "--", "true"], {}, 65, "outbox: --consumer has 256 bytes; the limit is 255\n"],
  ])("refuses %j with %j", async (args, env, code, stderr) => {
    using at = await place();
    // Its own environment only the program can read.
    if ("OUTBOX_ID" in env) await at.run(args, { code, stderr }, { env });
    else await at.here(args, { code, stderr });
    expect(entries(at)).toEqual([]);
  });

  test("refuses words whose bytes were replaced on their way", async () => {
    using at = await place();
    for (const words of ['--consumer "$ODD" -- true', '-- "$ODD"', '-- echo "$ODD"']) {
      const { code, stderr } = await at.sh(`ODD=$(printf 'a\\377'); outbox inbox run 1 ${words}`);
      expect([code, stderr]).toEqual([65, expect.stringContaining("holds bytes that are not UTF-8")]);
    }
  });

  test("goes on beside broken settings where the environment names the database", async () => {
    using at = (await place()).settingsText("dispach: {}\n");
    await at.run([...RUN, ...WORK], { stderr: /using the built-in bounds\n$/ }, { env: { OUTBOX_DB: at.database } });
    await at.here([...RUN, ...work(at)], { code: 78, stderr: /dispach/ });
    expect(at.lines("done")).toHaveLength(1);
  });
});

describe("while another works at the message", () => {
  test("it exits 75 and says who does", async () => {
    using at = await place();
    const first = await started(at);
    const who = new RegExp(
      `^outbox: message ${MESSAGE} is in work for consumer default: process ${first.pid} of .+ began .+; ask again when it has ended\n$`,
    );
    await at.run([...RUN, ...WORK], { code: 75, stderr: who });
    await at.here(["inbox", "run", MESSAGE, "--consumer", "other", "--", ...work(at)]);
    writeFileSync(at.file("go"), "");
    expect(await first.exited).toBe(0);
    await at.here([...RUN, ...work(at)]);
    expect(at.lines("done")).toHaveLength(1);
  });

  test("of twenty at once exactly one runs the command", async () => {
    using at = await place();
    const all = Array.from({ length: 20 }, () => at.start([...RUN, ...slow("echo done >> done")]));
    const codes: (number | null)[] = [];
    for (const each of all) void each.then(({ code }) => codes.push(code));
    await until(() => codes.length === 19);
    writeFileSync(at.file("go"), "");
    await Promise.all(all);
    expect(codes.toSorted((a, b) => Number(a) - Number(b))).toEqual([0, ...Array<number>(19).fill(75)]);
    expect([at.lines("started").length, at.lines("done").length]).toEqual([1, 1]);
    await at.run([...RUN, ...WORK]);
    await Promise.all(Array.from({ length: 19 }, () => at.here([...RUN, ...work(at)])));
    expect(at.lines("done")).toHaveLength(1);
  });
});

describe("a signal", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s is handed on once, and the command's own end counts", async (signal) => {
    using at = await place();
    const trap = `trap 'echo ${signal} >> heard' ${signal.slice(3)}; `;
    const command = slow("echo done >> done; exit 3");
    const first = await started(at, ["sh", "-c", trap + (command[2] ?? "")]);
    first.kill(signal);
    await until(() => at.lines("heard").length > 0);
    expect(first.hasExited()).toBe(false);
    writeFileSync(at.file("go"), "");
    expect(await first.exited).toBe(3);
    expect([at.lines("heard"), at.lines("done"), entries(at)]).toEqual([[signal], ["done"], []]);
  });

  test("that ends the command is told as a shell does, and the message is free again", async () => {
    using at = await place();
    const first = await started(at);
    first.kill("SIGTERM");
    expect(await first.exited).toBe(143);
    expect(entries(at)).toEqual([]);
  });

  test("that comes while it waits for the database keeps the command from starting", async () => {
    using at = await place();
    using lock = new Database(at.database);
    lock.run("BEGIN IMMEDIATE");
    const child = at.background(...RUN, ...WORK);
    await until(() => readFileSync(`/proc/${child.pid}/maps`, "utf8").includes("outbox.db-shm"));
    child.kill("SIGTERM");
    lock.run("ROLLBACK");
    expect(await child.exited).toBe(143);
    expect([at.lines("done"), entries(at)]).toEqual([[], []]);
  });
});

describe("when it is killed", () => {
  test("while its command runs, the next call runs it again, and the dead one's entry is in nobody's way", async () => {
    using at = await place();
    const first = await started(at);
    first.kill("SIGKILL");
    await first.exited;
    const [pid = 0] = at.lines("started").map(Number);
    await at.here([...RUN, ...work(at)]); // the command of the dead one lives on, and nobody hears of its end
    expect(() => process.kill(pid, 0)).not.toThrow();
    process.kill(pid, "SIGKILL");
    await at.here([...RUN, "false"]);
    expect(at.lines("done")).toHaveLength(1);
  });

  test("with its command, the next call runs it again", async () => {
    using at = await place();
    const first = await started(at);
    for (const pid of [...at.lines("started").map(Number), first.pid]) process.kill(pid, "SIGKILL");
    await first.exited;
    await at.here([...RUN, ...work(at)]);
    await at.here([...RUN, "false"]);
    expect(at.lines("done")).toHaveLength(1);
  });

  test("by its own command, which then succeeds, nothing is recorded", async () => {
    using at = await place();
    const child = at.background(...RUN, "sh", "-c", "kill -KILL $PPID; echo done >> done");
    await child.exited;
    await until(() => at.lines("done").length === 1);
    await at.here([...RUN, ...work(at)]);
    expect(at.lines("done")).toHaveLength(2);
    await at.here([...RUN, "false"]);
  });
});

describe("a success that cannot be recorded", () => {
  test("because the database is gone, is told, exit 74", async () => {
    using at = await place();
    const stderr = /^outbox: the command succeeded, and that cannot be recorded, so it may run again: no database at .*\n$/;
    await at.here([...RUN, "rm", at.database], { code: 74, stderr });
  });

  test("because its entry is another's by now, is told, exit 74, and changes nothing of that", async () => {
    using at = await place();
    const first = await started(at);
    at.sql("UPDATE dispatch_inbox SET token = 'another', holder = 'elsewhere 1 1'");
    writeFileSync(at.file("go"), "");
    expect(await first.exited).toBe(74);
    expect(first.said()).toBe(
      "outbox: the command succeeded, and that cannot be recorded: its entry is not ours any more; it may run again\n",
    );
    expect(at.sql("SELECT token, holder FROM dispatch_inbox")).toEqual([{ token: "another", holder: "elsewhere 1 1" }]);
  });

  test("leaves the message free: nobody holds it after that", async () => {
    using at = await place();
    const away = at.file("away.db");
    // By a process of its own: its end is what makes the message free.
    await at.run([...RUN, "mv", at.database, away], { code: 74, stderr: /so it may run again/ });
    rmSync(at.database, { force: true });
    await at.here(["--db", away, ...RUN, ...work(at)]);
    expect(at.lines("done")).toHaveLength(1);
  });
});

describe("within a delivered command", () => {
  test("it knows which message is meant, and its failure is a failed attempt", async () => {
    using at = new Workstation().settings({
      dispatch: {
        backoff: { base: "1s" },
        notify_template: [BINARY, "inbox", "run", "--", "sh", "-c", "echo $OUTBOX_ID >> seen; [ $OUTBOX_ATTEMPT = 2 ]"],
      },
    });
    await at.enqueue({});
    expect(await at.drain()).toMatchObject({ retried: 1 });
    at.ageWaits();
    expect(await at.drain()).toMatchObject({ delivered: 1 });
    const { id } = at.row(1);
    expect(at.lines("seen")).toEqual([id, id]);
    expect(entries(at)).toMatchObject([{ consumer: "default", dispatch_id: id }]);
  });

  test("a runner that is killed after the command's success sends the message again, and the command is skipped", async () => {
    using at = new Workstation();
    at.settings({
      dispatch: {
        notify_template: sh(`${BINARY} inbox run -- sh -c 'echo done >> done' && echo sent >> sent && [ $2 = 2 ] || kill -KILL $PPID`),
      },
    });
    await at.enqueue({});
    const runner = at.background("run", "--once");
    await runner.exited;
    await until(() => at.lines("sent").length === 1);
    expect(at.row(1)).toMatchObject({ status: "delivering", attempt: 1 });
    at.ageLeases();
    expect(await at.drain()).toMatchObject({ delivered: 1 });
    expect([at.lines("done").length, at.lines("sent").length]).toEqual([1, 2]);
  });
});

test("retention.inbox forgets what was done before it, but not while its message may come again", async () => {
  using at = new Workstation().settings({ dispatch: { notify_template: ["/bin/false"] }, retention: { inbox: "1h" } });
  await at.enqueue({});
  for (const name of ["1", MESSAGE, "0b".repeat(16)]) await at.here(["inbox", "run", name, "--", ...work(at)]);
  at.sql(`UPDATE dispatch_inbox SET done_at = done_at - 3600 WHERE dispatch_id <> '${"0b".repeat(16)}'`);
  await at.drain();
  expect(entries(at).map(({ dispatch_id }) => dispatch_id)).toEqual([at.row(1).id, "0b".repeat(16)]);
  expect(at.sql("SELECT details ->> 'inbox' AS n FROM admin_events")).toEqual([{ n: 1 }]);
  await at.here(["cancel", "1"], { stdout: /./ });
  await at.drain();
  expect(entries(at).map(({ dispatch_id }) => dispatch_id)).toEqual(["0b".repeat(16)]);
});
