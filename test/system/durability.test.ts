/** What `enqueue` asks of the disk, as the kernel saw it. `scripts/system.ts` runs this; it needs strace. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, Place } from "../cli/outbox.ts";

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
