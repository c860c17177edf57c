/** Local time by the C library, held against Date, each TZ in a process of its own. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { isUtc, localZone } from "../../../src/cli/zone.ts";
import { hostZone } from "../../../src/host.ts";
import { libc } from "../../../src/libc.ts";

const [JANUARY, JULY, HOUR_S] = [1_767_225_600, 1_782_864_000, 3_600];

/** Instant, what we say, what Date says. */
type Said = readonly [number, number, number];

function ask(tz: string | undefined): readonly Said[] {
  const env: Record<string, string> = tz === undefined ? {} : { TZ: tz };
  const child = Bun.spawnSync([process.execPath, join(import.meta.dir, "offsets.ts")], { env, stderr: "pipe" });
  expect(child.stderr.toString()).toBe("");
  return JSON.parse(child.stdout.toString()) as readonly Said[];
}

test.each([
  [undefined, 0],
  ["", 0],
  ["UTC", 0],
  ["Europe/Berlin", 16],
  [":Europe/Berlin", 16],
  ["Europe/London", 16],
  ["America/New_York", 16],
  ["Australia/Lord_Howe", 16],
  ["Asia/Kolkata", 0],
  ["EST5EDT", 16],
  ["bogus/zone", 0],
] as const)("where Date knows TZ %p, both agree to the second", (tz, changes) => {
  const said = ask(tz);
  for (const [instant, own, date] of said) expect([instant, own]).toEqual([instant, date]);
  // Both sources were looked through for changes: twice those of one.
  if (tz !== undefined) expect(said.length - 4).toBe(changes * 2);
});

test("what only the system understands holds, as with `date`, where the system can be asked", () => {
  for (const [tz, hours] of [
    ["EST5EDT,M3.2.0,M11.1.0", [-5, -4]],
    ["<+0330>-3:30", [3.5]],
    ["GMT0BST,M3.5.0/1,M10.5.0", [0, 1]],
  ] as const) {
    const said = ask(tz).flatMap(([, own, date]) => (libc() === null ? [] : [own / HOUR_S, date]));
    expect([tz, new Set(said)]).toEqual([tz, new Set(libc() === null ? [] : [...hours, 0])]);
  }
});

describe("localZone()", () => {
  const berlin = { utcOffsetS: (epochS: number) => (epochS % 31_536_000 > 15_000_000 ? 2 : 1) * HOUR_S };
  const level = { utcOffsetS: () => 0 };

  test("asks Date where there is no C library", () => {
    expect(localZone("Europe/Berlin", () => null, berlin).utcOffsetS(JULY)).toBe(berlin.utcOffsetS(JULY));
    expect(localZone(undefined, () => null, hostZone).utcOffsetS(JULY)).toBe(hostZone.utcOffsetS(JULY));
  });

  test("asks Date of a name that the C library takes for UTC, as where zone files are not installed", () => {
    expect(localZone("Europe/Berlin", () => level, berlin).utcOffsetS(JANUARY)).toBe(berlin.utcOffsetS(JANUARY));
    for (const tz of [undefined, "", "UTC", "Etc/UTC"]) expect(localZone(tz, () => level, berlin).utcOffsetS(JANUARY)).toBe(0);
  });

  test("asks Date of an instant that the C library cannot tell", () => {
    expect(localZone("", () => ({ utcOffsetS: () => null }), berlin).utcOffsetS(JANUARY)).toBe(berlin.utcOffsetS(JANUARY));
  });

  test("loads nothing before somebody asks", () => {
    let loaded = 0;
    const zone = localZone("", () => ((loaded += 1), level), berlin);
    expect(loaded).toBe(0);
    expect([zone.utcOffsetS(JANUARY), zone.utcOffsetS(JULY), loaded]).toEqual([0, 0, 1]);
  });
});

test("a zone that is UTC only in winter is not UTC", () => {
  expect(isUtc({ utcOffsetS: () => 0 })).toBe(true);
  expect(isUtc({ utcOffsetS: (epochS) => (new Date(epochS * 1_000).getUTCMonth() === 6 ? HOUR_S : 0) })).toBe(false);
});

test("only a TZ that makes UTC of local times is told as unknown", () => {
  const main = join(import.meta.dir, "../../../src/main.ts");
  const complaints = (TZ: string): string => {
    const argv = [process.execPath, main, "ls", "--since", "2026-01-01 18:00", "--db", "/nowhere/o.db"];
    return Bun.spawnSync(argv, { env: { TZ, HOME: "/nowhere" }, stderr: "pipe" }).stderr.toString();
  };
  expect(complaints("Europe/Berlni")).toContain("is no time zone known here, so local times are read as UTC");
  for (const tz of ["Europe/Berlin", "UTC", ...(libc() === null ? [] : ["EST5EDT,M3.2.0,M11.1.0"])])
    expect(complaints(tz)).toStartWith("outbox: no database at ");
});
