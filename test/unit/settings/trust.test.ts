import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../../../src/libc.ts";
import { readPlain } from "../../../src/settings/plain.ts";
import { readTrusted as readEither, readWary } from "../../../src/settings/trust.ts";
import { directory, removeAll, trouble, UID, write } from "./scratch.ts";

afterAll(removeAll);

/** Gives a path to somebody else, and answers as whom it must then be looked at. */
function giveAway(path: string): number {
  if (UID !== 0) return UID + 1;
  chownSync(path, 12_345, -1);
  return 0;
}

describe.each([
  ["readTrusted()", readEither],
  ["readWary()", readWary],
] as const)("%s", (_, readTrusted) => {
  test("reads a file that only its owner can write", () => {
    const file = write(join(directory(), "s.yaml"), "run: {}\n");
    expect(readTrusted(file, UID)).toEqual({ file, text: "run: {}\n" });
    chmodSync(file, 0o444);
    expect(readTrusted(file, UID).text).toBe("run: {}\n");
  });

  test("follows links to the real name, whoever can write where the link lies", () => {
    const [real, open] = [directory(), directory()];
    const file = write(join(real, "s.yaml"), "");
    chmodSync(open, 0o777);
    symlinkSync(file, join(open, "link"));
    symlinkSync(join(open, "link"), join(open, "link-to-link"));
    expect(readTrusted(join(open, "link-to-link"), UID).file).toBe(file);
  });

  test.each([0o620, 0o602, 0o666])("refuses a file of mode %o and says the chmod", async (mode) => {
    const file = write(join(directory(), "s.yaml"), "");
    chmodSync(file, mode);
    expect(await trouble(() => readTrusted(file, UID))).toMatchObject({
      kind: "permission",
      message: `the settings file can be written by others, who could name commands to run: ${file}`,
      hint: `chmod go-w ${file}`,
    });
  });

  test.each([0o770, 0o707, 0o1777])("refuses a file in a directory of mode %o and says the chmod", async (mode) => {
    const path = directory();
    const file = write(join(path, "s.yaml"), "");
    chmodSync(path, mode);
    expect(await trouble(() => readTrusted(file, UID))).toMatchObject({ kind: "permission", hint: `chmod go-w ${path}` });
  });

  test("looks at the directory of the real file, not at that of the link", async () => {
    const [real, ours] = [directory(), directory()];
    symlinkSync(write(join(real, "s.yaml"), ""), join(ours, "s.yaml"));
    chmodSync(real, 0o777);
    expect(await trouble(() => readTrusted(join(ours, "s.yaml"), UID))).toMatchObject({ kind: "permission", hint: `chmod go-w ${real}` });
  });

  test("refuses the file of another user, also when root asks", async () => {
    const file = write(join(directory(), "s.yaml"), "");
    const uid = giveAway(file);
    const refused = await trouble(() => readTrusted(file, uid));
    expect(refused).toMatchObject({ kind: "permission", hint: `chown ${uid} ${file}` });
    expect(refused.message).toContain("owned by another user");
  });

  test("refuses a file in the directory of another user, also when root asks", async () => {
    const path = directory();
    const file = write(join(path, "s.yaml"), "");
    const uid = giveAway(path);
    expect(await trouble(() => readTrusted(file, uid))).toMatchObject({ kind: "permission", hint: `chown ${uid} ${path}` });
  });

  test("quotes a name in the hint so that a shell reads it back", async () => {
    const file = write(join(directory(), "it's mine.yaml"), "");
    chmodSync(file, 0o666);
    expect((await trouble(() => readTrusted(file, UID))).hint).toBe(`chmod go-w '${file.replace("'", "'\\''")}'`);
  });

  test("refuses what is no regular file without opening it", async () => {
    const path = directory();
    mkdirSync(join(path, "directory"));
    // Opening it for reading would wait for a writer for ever.
    Bun.spawnSync(["mkfifo", "-m", "600", join(path, "pipe")]);
    symlinkSync("/dev/zero", join(path, "zero"));
    for (const [name, what] of [
      ["directory", "a directory"],
      ["pipe", "a pipe"],
      ["zero", "a device"],
    ] as const) {
      const refused = await trouble(() => readTrusted(join(path, name), UID));
      expect(refused.kind).toBe("settings");
      expect(refused.message).toEndWith(`is ${what}`);
    }
  });

  test("refuses links to nothing and in a circle", async () => {
    const path = directory();
    symlinkSync(join(path, "gone"), join(path, "dangling"));
    symlinkSync(join(path, "round"), join(path, "round"));
    expect(await trouble(() => readTrusted(join(path, "dangling"), UID))).toMatchObject({ kind: "settings" });
    expect(await trouble(() => readTrusted(join(path, "round"), UID))).toMatchObject({ kind: "settings" });
  });

  test("reads 256 KiB and refuses a byte more", async () => {
    const file = join(directory(), "s.yaml");
    write(file, "#".repeat(262_144));
    expect(readTrusted(file, UID).text).toHaveLength(262_144);
    write(file, "#".repeat(262_145));
    const refused = await trouble(() => readTrusted(file, UID));
    expect(refused).toMatchObject({ kind: "settings", message: `the settings file ${file} is larger than 256 KiB` });
  });

  test("drops a byte order mark and ends lines with a line feed", () => {
    const file = join(directory(), "s.yaml");
    writeFileSync(file, "\ufeffrun: {}\r\nlog: {}\n", { mode: 0o600 });
    expect(readTrusted(file, UID).text).toBe("run: {}\nlog: {}\n");
  });

  test.each([
    ["invalid UTF-8", new Uint8Array([0x61, 0x0a, 0x62, 0xff]), "2:2: not UTF-8 text"],
    ["UTF-16", new Uint8Array([0xff, 0xfe, 0x61, 0x00]), "1:1: not UTF-8 text"],
    ["a NUL", "a: b\nc: \0", "2:4: a control character (U+0000)"],
    ["an escape sequence", "a: \u001b[2J", "1:4: a control character (U+001B)"],
    ["a carriage return within a line", "a: b\rc: d", "1:5: a control character (U+000D)"],
  ])("refuses %s with its place", async (_, content, told) => {
    const file = write(join(directory(), "s.yaml"), content);
    expect(await trouble(() => readTrusted(file, UID))).toMatchObject({ kind: "settings", message: `${file}:${told}` });
  });
});

describe("readPlain()", () => {
  test("reads what is plain, by its real name", () => {
    const [real, other] = [directory(), directory()];
    const file = write(join(real, "s.yaml"), "run: {}\n");
    symlinkSync(file, join(other, "link"));
    const read = readPlain(join(other, "link"), UID, 100);
    // Where there is no such way, the other one reads everything.
    if (libc() !== null) expect(read).toEqual({ file, bytes: new TextEncoder().encode("run: {}\n") });
    else expect(read).toBeNull();
  });

  test("leaves to the other way what is larger than it may be", () => {
    expect(readPlain(write(join(directory(), "s.yaml"), "123456"), UID, 5)).toBeNull();
  });
});
