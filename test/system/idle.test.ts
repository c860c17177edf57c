/**
 * A runner with nothing to do leaves the disk alone, for an hour. `scripts/system.ts` runs this: strace sees each call that could
 * write, and libfaketime makes the hour short, for timers too.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hostClock } from "../../src/host.ts";
import { BINARY } from "../cli/outbox.ts";
import { Workstation } from "../cli/running.ts";

setDefaultTimeout(240_000);

/** How much faster the runner's clocks go, and its timers with them. */
const FASTER = 120;
const HOUR_MS = 3_660_000 / FASTER;
/** Looks at the database's file, at most one a second of its own time: until its start is over, and in the hour at least. */
const STARTS_LOOKS = 30;
const HOUR_LOOKS = 200;

const WRITES =
  "write,writev,pwrite64,pwritev,pwritev2,sendfile,splice,copy_file_range,fallocate,ftruncate,truncate,fsync,fdatasync,sync,syncfs,msync," +
  "sync_file_range,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,mkdir,mkdirat,mknod,mknodat,creat,open,openat," +
  "openat2,chmod,fchmod,fchmodat,utimensat";
const LOOKS = "stat,lstat,newfstatat,statx";

/** What a call does to the disk; null: nothing. What is written to is of the kernel's own: a pipe, an eventfd, a socket, the log. */
function mark(line: string): string | null {
  const call = /^\d+ +(\w+)\((.*)/.exec(line);
  if (call === null || LOOKS.split(",").includes(call[1] ?? "")) return null; // ends of threads, ends of calls that were cut in two
  const [, name = "", terms = ""] = call;
  if (/^(?:open|openat|openat2)$/.test(name)) return /O_(?:WRONLY|RDWR|CREAT|TRUNC)/.test(terms) ? line : null;
  return /^\d+<(?:anon_inode|pipe|socket|UNIX)/.test(terms) ? null : line;
}

/** Everything in the database's directory, shared memory included. */
function bytes(place: Workstation): Readonly<Record<string, string>> {
  const directory = dirname(place.database);
  return Object.fromEntries(
    readdirSync(directory)
      .toSorted()
      .map((name) => [name, Bun.hash(readFileSync(join(directory, name))).toString(16)]),
  );
}

interface Hour {
  /** Calls that write, of the hour. */
  readonly marks: readonly string[];
  readonly calls: number;
  readonly before: Readonly<Record<string, string>>;
  readonly after: Readonly<Record<string, string>>;
  readonly said: string;
}

async function anHourOf(place: Workstation): Promise<Hour> {
  const [log, said] = [place.file("calls"), place.file("said")];
  const strace = ["strace", "-f", "-y", "-qq", "-s", "0", "-e", `trace=${WRITES},${LOOKS}`, "-e", "signal=none", "-o", log];
  const clock = { LD_PRELOAD: process.env["LIBFAKETIME"] ?? "", FAKETIME: `+0 x${FASTER}` };
  const variables = Object.entries(clock).flatMap(([name, value]) => ["-E", `${name}=${value}`]);
  const child = Bun.spawn([...strace, ...variables, BINARY, "run"], {
    cwd: place.home,
    env: place.env(),
    stdio: ["ignore", "ignore", Bun.file(said)],
  });
  try {
    const seen = (): readonly string[] => (existsSync(log) ? readFileSync(log, "utf8").split("\n") : []);
    const look = `"${place.database}"`;
    const looks = (lines: readonly string[]): number =>
      lines.filter((line) => line.includes(look) && /^\d+ +(?:l?stat|newfstat|statx)/.test(line)).length;
    const lookedAt = async (atLeast: number): Promise<readonly string[]> => {
      for (;;) {
        const lines = seen();
        if (looks(lines) >= atLeast) return lines;
        expect(child.exitCode).toBeNull();
        await hostClock.sleep(500);
      }
    };
    const start = await lookedAt(STARTS_LOOKS);
    const before = bytes(place);
    await hostClock.sleep(HOUR_MS);
    const end = (await lookedAt(looks(start) + HOUR_LOOKS)).slice(start.length);
    return {
      marks: end.flatMap((line) => mark(line) ?? []),
      calls: end.length,
      before,
      after: bytes(place),
      said: readFileSync(said, "utf8"),
    };
  } finally {
    // strace would leave it behind; it ends with its only child.
    const runner = /^\d+/.exec(existsSync(log) ? readFileSync(log, "utf8") : "")?.[0];
    if (runner !== undefined) process.kill(Number(runner), "SIGKILL");
    await child.exited;
  }
}

const KEEPING = { dispatch: { notify_template: ["/bin/true"] }, retention: { delivered: "7d", dead_letter: "30d", inbox: "30d" } };

const IDLE: readonly (readonly [string, (place: Workstation) => Promise<unknown>])[] = [
  ["an empty database", (place) => place.settings(KEEPING).run(["run", "--once"])],
  [
    "finished, dead, held and delayed rows, an inbox and a circuit that is open",
    async (place) => {
      place.settings({
        ...KEEPING,
        dispatch: {
          ...KEEPING.dispatch,
          circuit: { failures: 1, cooldown: "1d" },
          routes: { bad: { notify_template: ["/bin/false"], max_attempts: 1 } },
        },
      });
      await place.enqueue(...Array.from({ length: 20 }, () => ({})), { kind: "bad", deliver_to: "dead" });
      await place.start(["run", "--once"]);
      expect(place.sql("SELECT 1 FROM dispatch_destinations WHERE open_until IS NOT NULL")).toHaveLength(1);
      await place.run(["hold", "--to", "seat-held"], { stdout: /^/ });
      await place.enqueue({ deliver_to: "seat-held" }, { not_before: Date.now() / 1_000 + 40 * 86_400 });
      await place.run(["inbox", "run", "0123456789abcdef0123456789abcdef", "--", "/bin/true"]);
    },
  ],
];

test.each(IDLE)("an idle run writes nothing in an hour: %s", async (_, prepare) => {
  using place = new Workstation();
  await prepare(place);
  const { marks, calls, before, after, said } = await anHourOf(place);
  console.log(`${calls} calls in the hour, ${marks.length} that write`);
  expect(marks).toEqual([]);
  expect(after).toEqual(before);
  expect(said).toBe("");
});

test("what needs a person is noted once an hour, and nothing else is written", async () => {
  using place = new Workstation().settings({});
  await place.enqueue({}, {});
  const { marks, calls, said } = await anHourOf(place);
  console.log(`${calls} calls in the hour, ${marks.length} that write`);
  // Told again in that hour, which shows that it was one; each time is one commit, and nothing else reaches the disk.
  const told = marks.filter((line) => line.includes(`write(2<${place.file("said")}>`));
  expect(told.length).toBeGreaterThan(0);
  expect(said.trimEnd().split("\n").length).toBe(told.length + 1);
  const others = marks.filter((line) => !told.includes(line));
  expect(others.filter((line) => !new RegExp(`^\\d+ +(?:pwrite64|f(?:data)?sync)\\(\\d+<${place.database}-wal>`).test(line))).toEqual([]);
  expect(others.filter((line) => line.includes("sync(")).length).toBe(told.length);
});
