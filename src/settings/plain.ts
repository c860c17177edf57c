/** The settings file in the plain case: a small regular file that nobody else can change, read without node:fs. */
import { type Facts, libc, type Libc } from "../libc.ts";

/**
 * Reads it if all is as it should be, by the same rules as `trust.ts`.
 * @param largest bytes
 * @returns the real name and what is in it; null for whatever is unusual: then `trust.ts` looks, and says what it is
 */
export function readPlain(path: string, uid: number, largest: number): { readonly file: string; readonly bytes: Uint8Array } | null {
  const c = path.includes("\0") ? null : libc();
  const file = c?.realpath(path) ?? null;
  if (c === null || file === null) return null;
  // Looked at before it is opened: opening a device may do anything.
  if (!isPlain(c.facts(file, "stay"), "file", uid)) return null;
  if (!isPlain(c.facts(file.slice(0, file.lastIndexOf("/")) || "/", "follow"), "directory", uid)) return null;
  const descriptor = c.open(file);
  if (descriptor === null) return null;
  try {
    // What is checked is what is read: the open file, not the name.
    const facts = c.factsOf(descriptor);
    if (facts === null || !isPlain(facts, "file", uid) || facts.size > largest) return null;
    const bytes = contents(c, descriptor, facts.size);
    return bytes === null ? null : { file, bytes };
  } finally {
    c.close(descriptor);
  }
}

function isPlain(facts: Facts | "missing" | null, kind: Facts["kind"], uid: number): boolean {
  if (facts === null || facts === "missing" || facts.kind !== kind) return false;
  return (facts.uid === 0 || facts.uid === uid) && (facts.mode & 0o022) === 0;
}

/** All of it; null when it cannot be read, or is changing meanwhile. */
function contents(c: Libc, descriptor: number, size: number): Uint8Array | null {
  const buffer = new Uint8Array(size + 1);
  for (let length = 0; length <= size;) {
    const count = c.read(descriptor, buffer.subarray(length));
    if (count === null) return null;
    if (count === 0) return buffer.subarray(0, length);
    length += count;
  }
  return null;
}
