/** What `enqueue` asks of the disk, as the kernel saw it. `scripts/system.ts` runs this; it needs strace. */
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BINARY, ID, Place } from "../cli/outbox.ts";

const ENQUEUE = ["enqueue", "--kind", "ping", "--to", "seat-1"];

/** The calls of one enqueue, in order: `sync` for each fsync or fdatasync, `answer` where it writes the id. */
function calls(place: Place): readonly ("sync" | "answer")[] {
  const log = join(place.home, "calls.txt");
  const strace = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,write", "-o", log];
  const run = Bun.spawnSync([...strace, BINARY, ...ENQUEUE], { cwd: place.home, env: place.env(), stdio: ["ignore", "pipe", "pipe"] });
  const id = run.stdout.toString().trim();
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  return readFileSync(log, "utf8")
    .split("\n")
    .flatMap((line) =>
      /\bf(?:data)?sync\(\d+/.test(line) ? ["sync" as const] : line.includes(`write(1, "${id}`) ? ["answer" as const] : [],
    );
}

test("the first enqueue syncs before it answers", () => {
  using place = new Place();
  const seen = calls(place);
  expect(seen[0]).toBe("sync");
  expect(seen.filter((call) => call === "answer")).toHaveLength(1);
});

test("an enqueue into an existing database syncs one to five times, and before it answers", () => {
  using place = new Place();
  calls(place);
  const seen = calls(place);
  expect(seen[0]).toBe("sync");
  const syncs = seen.filter((call) => call === "sync").length;
  expect(syncs).toBeGreaterThanOrEqual(1);
  expect(syncs).toBeLessThanOrEqual(5);
});

/** The calls of `enqueue` that the filter names, each with the paths behind its descriptors. */
function traced(place: Place, filter: string, more: readonly string[] = []): readonly string[] {
  const log = join(place.home, "traced.txt");
  const strace = ["strace", "-f", "-y", "-qq", "-e", `trace=${filter}`, "-o", log];
  const run = Bun.spawnSync([...strace, BINARY, ...ENQUEUE, ...more], {
    cwd: place.home,
    env: place.env(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  expect(run.stdout.toString()).toMatch(ID);
  return readFileSync(log, "utf8").split("\n");
}

/** The files and directories that were synced, in order. */
function synced(calls: readonly string[]): readonly string[] {
  return calls.flatMap((line) => /\bf(?:data)?sync\(\d+<([^>]*)>/.exec(line)?.[1] ?? []);
}

test("the directory that holds a new name is synced: those of new directories, and that of the file before anything is in it", () => {
  using place = new Place();
  const seen = synced(traced(place, "fsync,fdatasync"));
  const directory = dirname(place.database);
  const made = [place.home, join(place.home, ".local"), join(place.home, ".local/state"), directory];
  expect(seen.slice(0, made.length)).toEqual(made);
  expect(seen.slice(made.length).every((path) => path.startsWith(place.database) || path === directory)).toBeTrue();
});

test("the copy of an older schema is synced before it has its name, and the name after it", () => {
  using place = new Place();
  const path = join(place.home, "old.db");
  copyFileSync(join(import.meta.dir, "../fixtures/releases/0.1.0/outbox.db"), path);
  const copy = `${path}.schema-1.backup`;
  const calls = traced(place, "fsync,fdatasync,rename,renameat,renameat2", ["--db", path]);
  const at = (pattern: RegExp, from = 0): number => calls.findIndex((line, index) => index >= from && pattern.test(line));
  const named = at(/rename.*\.schema-1\.backup/);
  expect(named).toBeGreaterThan(-1);
  expect(synced(calls.slice(0, named)).at(-1)).toBe(`${copy}.partial`);
  expect(synced(calls.slice(named))[0]).toBe(place.home);
});

test("the settings file is opened without waiting for a writer and without following a link that was put in its place", () => {
  using place = new Place();
  const config = join(place.home, ".config/outbox/settings.yaml");
  mkdirSync(dirname(config), { recursive: true, mode: 0o700 });
  writeFileSync(config, "limits: { payload: 1MiB }\n", { mode: 0o600 });
  // With O_PATH its name is looked at and nothing is opened.
  const opened = traced(place, "open,openat,openat2").filter((line) => line.includes(`"${config}"`) && !line.includes("O_PATH"));
  expect(opened).not.toEqual([]);
  for (const line of opened) expect(line).toMatch(/O_RDONLY(?=.*O_NOFOLLOW)(?=.*O_NONBLOCK)/);
});
