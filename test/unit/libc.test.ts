/** Held against node:fs, which answers the same questions more slowly. */
import { describe, expect, test } from "bun:test";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type Facts, libc } from "../../src/libc.ts";
import { scratch } from "../fixtures/world.ts";

const c = libc();

test("it is there on Linux with glibc", () => {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  const isGlibc = process.platform === "linux" && report.header?.glibcVersionRuntime !== undefined;
  expect(c !== null).toBe(isGlibc && ["x64", "arm64"].includes(process.arch));
});

describe("libc()", () => {
  const files = (dir: { file(name: string): string }): string[] => {
    writeFileSync(dir.file("file"), "x".repeat(70_000), { mode: 0o640 });
    mkdirSync(dir.file("directory"), { mode: 0o1777 });
    mkdirSync(dir.file("directory/ünïcode 😀"));
    symlinkSync(dir.file("file"), dir.file("link"));
    symlinkSync("../directory", dir.file("directory/round"));
    symlinkSync(dir.file("gone"), dir.file("dangling"));
    symlinkSync(dir.file("circle"), dir.file("circle"));
    Bun.spawnSync(["mkfifo", "-m", "604", dir.file("pipe")]);
    const made = [
      "file",
      "directory",
      "directory/ünïcode 😀",
      "link",
      "directory/round",
      "dangling",
      "circle",
      "pipe",
      "gone",
      "file/below",
    ];
    return [...made.map((name) => dir.file(name)), "/", "/dev/null", "/proc/self/exe"];
  };

  test("knows of files what node:fs knows", () => {
    using dir = scratch();
    for (const path of files(dir)) {
      expect([path, c?.facts(path, "stay")]).toEqual([path, asked(() => lstatSync(path))]);
      expect([path, c?.facts(path, "follow")]).toEqual([path, asked(() => statSync(path))]);
    }
  });

  test("follows links as node:fs does", () => {
    using dir = scratch();
    for (const path of [...files(dir), `${dir.file("directory")}/../link`, "/proc/self/cwd"])
      expect([path, c?.realpath(path)]).toEqual([path, real(path)]);
  });

  test("opens no link and waits at no pipe", () => {
    using dir = scratch();
    files(dir);
    expect(c?.open(dir.file("link"))).toBeNull();
    expect(c?.open(dir.file("gone"))).toBeNull();
    const pipe = c?.open(dir.file("pipe")) ?? -1;
    expect(c?.factsOf(pipe)).toMatchObject({ kind: "other" });
    closeSync(pipe);
  });

  test("reads what is there, and knows the open file", () => {
    using dir = scratch();
    const [path] = files(dir);
    const descriptor = c?.open(path ?? "") ?? -1;
    const buffer = new Uint8Array(100_000);
    expect(c?.read(descriptor, buffer)).toBe(70_000);
    expect(Buffer.from(buffer.subarray(0, 70_000))).toEqual(readFileSync(path ?? ""));
    expect(c?.read(descriptor, buffer)).toBe(0);
    expect(c?.factsOf(descriptor)).toEqual({ kind: "file", uid: process.getuid?.() ?? 0, mode: 0o640, size: 70_000 });
    c?.close(descriptor);
    expect([c?.read(descriptor, buffer), c?.factsOf(descriptor)]).toEqual([null, null]);
  });

  test("writes, and says when it could not", () => {
    using dir = scratch();
    const path = dir.file("written");
    const descriptor = openSync(path, "w");
    expect(c?.write(descriptor, new TextEncoder().encode("grüße"))).toBe(7);
    closeSync(descriptor);
    expect(readFileSync(path, "utf8")).toBe("grüße");
    expect(c?.write(descriptor, new Uint8Array(1))).toBeNull();
    const full = openSync("/dev/full", "w");
    expect(c?.write(full, new Uint8Array(1))).toBeNull();
    closeSync(full);
  });

  test("tells a terminal from what is none", () => {
    using dir = scratch();
    const [file] = files(dir);
    const descriptors = [openSync(file ?? "", "r"), openSync("/dev/ptmx", "r+")];
    expect(descriptors.map((descriptor) => c?.isTerminal(descriptor))).toEqual([false, true]);
    for (const descriptor of descriptors) closeSync(descriptor);
    expect(c?.isTerminal(descriptors[0] ?? -1)).toBe(false);
  });

  test("takes no path that NUL would cut short", () => {
    expect(() => c?.facts("/etc\0/passwd", "stay")).toThrow("a path holds NUL");
  });
});

function asked(look: () => Stats): Facts | "missing" | null {
  try {
    const { mode, uid, size } = look();
    const kind = (mode & 0o170000) === 0o100000 ? "file" : (mode & 0o170000) === 0o040000 ? "directory" : "other";
    return { kind, uid, mode: mode & 0o7777, size };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    return code === "ENOENT" || code === "ENOTDIR" ? "missing" : null;
  }
}

function real(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}
