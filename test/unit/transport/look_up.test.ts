import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lookUp } from "../../../src/transport/look_up.ts";

const home = mkdtempSync(join(tmpdir(), "outbox-look-up-"));
afterAll(() => rmSync(home, { recursive: true }));
for (const directory of ["a", "b", "a/folder"]) mkdirSync(join(home, directory));
for (const [name, mode] of [
  ["a/plain", 0o644],
  ["b/plain", 0o755],
  ["a/tool", 0o755],
  ["b/tool", 0o755],
  ["a/text", 0o644],
] as const) {
  writeFileSync(join(home, name), "#!/bin/sh\n");
  chmodSync(join(home, name), mode);
}
symlinkSync(join(home, "a/tool"), join(home, "b/link"));
symlinkSync(join(home, "nowhere"), join(home, "b/dangling"));

const PATH = `${home}/a:${home}/b/`;
const at = (name: string): string => join(home, name);
const errorOf = (argv0: string, env: Record<string, string> = { PATH }): string | null => {
  const found = lookUp(argv0, env);
  return found.kind === "fault" ? found.error : null;
};

describe("lookUp()", () => {
  test.each([
    ["tool", "a/tool"],
    ["plain", "b/plain"],
    ["link", "b/link"],
  ])("finds %s in the PATH of the environment that it is given, passing over what is not executable", (name, path) => {
    expect(lookUp(name, { PATH })).toEqual({ kind: "found", path: at(path) });
  });
  test("takes a path with a slash as it is", () => {
    expect(lookUp(at("a/tool"), {})).toEqual({ kind: "found", path: at("a/tool") });
  });
  test("names the command and the PATH when nothing is found", () => {
    expect(errorOf("nope")).toBe(`no command "nope" in PATH (${PATH})`);
  });
  test("names the file that it found but may not execute", () => {
    expect(errorOf("text")).toBe(`no command "text" in PATH (${PATH}); ${at("a/text")} is not executable by this user (EACCES)`);
    expect(errorOf("folder")).toBe(`no command "folder" in PATH (${PATH}); ${at("a/folder")} is not a file`);
  });
  test.each([{}, { PATH: "" }])("uses and names a PATH of its own where none is set: %p", (env) => {
    expect(lookUp("sh", env).kind).toBe("found");
    expect(errorOf("nope", env)).toBe('no command "nope" in PATH (/usr/bin:/bin, since none is set)');
  });
  test("never looks into the current directory, nor from there", () => {
    const here = process.cwd();
    process.chdir(home);
    try {
      expect(lookUp("./a/tool", {}).kind).toBe("found"); // there, and could be executed
      expect(errorOf("tool", { PATH: "a" })).toBe('no command "tool" in PATH (a)');
      process.chdir("a");
      expect(errorOf("tool", { PATH: "::.:../a" })).toBe('no command "tool" in PATH (::.:../a)');
    } finally {
      process.chdir(here);
    }
  });
  test.each([
    ["a/nope", "does not exist (ENOENT)"],
    ["a/tool/x", "does not exist (ENOENT)"],
    ["b/dangling", "does not exist (ENOENT)"],
    ["a/text", "is not executable by this user (EACCES)"],
    ["a/folder", "is not a file"],
  ])("says why %s cannot be started: it %s", (name, why) => {
    expect(errorOf(at(name))).toBe(`${at(name)} ${why}`);
  });
  test.each(["", "a\0b", "/a\0b"])("refuses the name %p", (name) => {
    expect(errorOf(name)).not.toBeNull();
  });
});
