/** The model of a disk: what a sync promises it keeps, and all else it takes away. */
import { expect, test } from "bun:test";
import { type Change, Disk, type Fate, FATES, type Image } from "./disk.ts";
import { numbers } from "./report.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const write = (path: string, text: string, at = 0): Change => ({ kind: "write", path, at, bytes: bytes(text) });
const text = (image: Image, path: string): string | undefined => {
  const found = image.get(path);
  return found === undefined ? undefined : new TextDecoder().decode(found);
};

/** Every text that a file may hold after a power loss, undefined where it may be missing. */
function outcomes(changes: readonly Change[], path: string): Set<string | undefined> {
  const disk = new Disk();
  for (const change of changes) disk.change(change);
  const random = numbers(1);
  const fates: readonly Fate[] = [...FATES, ...Array.from({ length: 200 }, (_, at): Fate => (at % 2 === 0 ? "some" : "the first"))];
  return new Set(fates.map((fate) => text(disk.image(fate, random), path)));
}

const MADE: readonly Change[] = [
  { kind: "make", path: "/d/a" },
  { kind: "sync names", path: "/d" },
];

test("what was synced is there, whatever happens", () => {
  expect(outcomes([...MADE, write("/d/a", "one"), { kind: "sync", path: "/d/a" }], "/d/a")).toEqual(new Set(["one"]));
});

test("what was written since may be there, missing, or without what was written before it", () => {
  const changes = [...MADE, write("/d/a", "abc"), { kind: "sync", path: "/d/a" } as const, write("/d/a", "X"), write("/d/a", "Z", 2)];
  expect(outcomes(changes, "/d/a")).toEqual(new Set(["abc", "Xbc", "abZ", "XbZ"]));
});

test("a name whose directory was not synced may be missing although its file was synced", () => {
  const changes: readonly Change[] = [{ kind: "make", path: "/d/a" }, write("/d/a", "one"), { kind: "sync", path: "/d/a" }];
  expect(outcomes(changes, "/d/a")).toEqual(new Set([undefined, "one"]));
});

test("a file is there only where its new directory is", () => {
  const changes: readonly Change[] = [
    { kind: "directory", path: "/h/d" },
    { kind: "make", path: "/h/d/a" },
    { kind: "sync names", path: "/h/d" },
  ];
  expect(outcomes(changes, "/h/d/a")).toEqual(new Set([undefined, ""]));
  expect(outcomes([...changes, { kind: "sync names", path: "/h" }], "/h/d/a")).toEqual(new Set([""]));
});

test("a removal, a rename and a shorter length may be undone as long as they were not synced", () => {
  const one: readonly Change[] = [...MADE, write("/d/a", "one"), { kind: "sync", path: "/d/a" }];
  expect(outcomes([...one, { kind: "remove", path: "/d/a" }], "/d/a")).toEqual(new Set([undefined, "one"]));
  expect(outcomes([...one, { kind: "rename", path: "/d/a", to: "/d/b" }], "/d/b")).toEqual(new Set([undefined, "one"]));
  expect(outcomes([...one, { kind: "cut", path: "/d/a", size: 1 }], "/d/a")).toEqual(new Set(["o", "one"]));
  const synced: readonly Change[] = [...one, { kind: "rename", path: "/d/a", to: "/d/b" }, { kind: "sync names", path: "/d" }];
  expect(outcomes(synced, "/d/b")).toEqual(new Set(["one"]));
});

test("a long write may arrive in whole sectors, or as a length without its bytes", () => {
  const page = "x".repeat(2_048);
  const lengths = [...outcomes([...MADE, write("/d/a", page)], "/d/a")].map((found) => found?.replaceAll("\0", "").length);
  expect(new Set(lengths)).toEqual(new Set([0, 512, 1_024, 1_536, 2_048]));
});
