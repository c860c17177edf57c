/**
 * A disk as a power loss leaves it. What was synced is there; of what was changed since, any part may be, in any order and torn.
 * A name is synced with its directory, never with its file: that is the least that a file system may do.
 */

/** One change of the disk, as the kernel saw it. Paths are absolute. */
export type Change =
  | { readonly kind: "make" | "remove" | "directory" | "sync names"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: "cut"; readonly path: string; readonly size: number }
  | { readonly kind: "sync"; readonly path: string }
  | { readonly kind: "rename" | "link"; readonly path: string; readonly to: string };

type Edit = Extract<Change, { kind: "write" | "cut" }>;

interface File {
  synced: Uint8Array;
  pending: Edit[];
}

/** A change of names that is not synced yet. */
interface NameChange {
  readonly directory: string;
  readonly add: readonly [path: string, file: File | "directory"] | null;
  readonly drop: string | null;
}

/** The files of an image, by path. */
export type Image = ReadonlyMap<string, Uint8Array>;

/** What survives of what is pending. `some` draws for each change; `torn` applies all, the last write of each file in part. */
export type Fate = "nothing" | "everything" | "the first" | "the last" | "torn" | "some";
export const FATES: readonly Fate[] = ["nothing", "everything", "the last", "torn"];

/** Disks write sectors; a longer write can arrive in part. */
const SECTOR = 512;

export class Disk {
  readonly #names = new Map<string, File | "directory">();
  readonly #syncedNames = new Map<string, File | "directory">();
  /** Directories that were made since the beginning: what lies in one is there only if it is. */
  readonly #made = new Set<string>();
  #pendingNames: NameChange[] = [];

  /** @param given what lies on it, synced */
  constructor(given: Image = new Map()) {
    for (const [path, bytes] of given) {
      const file: File = { synced: bytes, pending: [] };
      this.#names.set(path, file);
      this.#syncedNames.set(path, file);
    }
  }

  change(change: Change): void {
    switch (change.kind) {
      case "make":
        if (!this.#names.has(change.path)) this.#rename({ add: [change.path, { synced: new Uint8Array(), pending: [] }] });
        return;
      case "directory":
        this.#made.add(change.path);
        return this.#rename({ add: [change.path, "directory"] });
      case "remove":
        return this.#rename({ drop: change.path });
      case "rename":
      case "link": {
        const file = this.#names.get(change.path);
        if (file !== undefined) this.#rename({ add: [change.to, file], drop: change.kind === "rename" ? change.path : null });
        return;
      }
      case "sync names":
        for (const pending of this.#pendingNames) if (pending.directory === change.path) apply(this.#syncedNames, pending);
        this.#pendingNames = this.#pendingNames.filter(({ directory }) => directory !== change.path);
        return;
      case "write":
      case "cut":
        this.#file(change.path)?.pending.push(change);
        return;
      case "sync": {
        const file = this.#file(change.path);
        if (file === undefined) return;
        file.synced = edited(file.synced, file.pending);
        file.pending = [];
        return;
      }
      default:
        return change satisfies never;
    }
  }

  /** What a power loss now may leave. */
  image(fate: Fate, random: () => number): Image {
    const names = new Map(this.#syncedNames);
    for (const pending of chosen(this.#pendingNames, fate, random)) apply(names, pending);
    const image = new Map<string, Uint8Array>();
    for (const [path, file] of names) {
      if (file === "directory" || [...this.#made].some((made) => path.startsWith(`${made}/`) && !names.has(made))) continue;
      image.set(path, edited(file.synced, survivors(file.pending, fate, random)));
    }
    return image;
  }

  #file(path: string): File | undefined {
    const file = this.#names.get(path);
    return file === "directory" ? undefined : file;
  }

  #rename({ add = null, drop = null }: Partial<Pick<NameChange, "add" | "drop">>): void {
    const path = add?.[0] ?? drop ?? "";
    const change: NameChange = { directory: path.slice(0, path.lastIndexOf("/")), add, drop };
    apply(this.#names, change);
    this.#pendingNames.push(change);
  }
}

function apply(names: Map<string, File | "directory">, { add, drop }: NameChange): void {
  if (drop !== null) names.delete(drop);
  if (add !== null) names.set(...add);
}

/** Which of the pending changes survive, in their order. */
function chosen<Item>(pending: readonly Item[], fate: Fate, random: () => number): readonly Item[] {
  switch (fate) {
    case "nothing":
      return [];
    case "everything":
    case "torn":
      return pending;
    case "the first":
      return pending.slice(0, Math.floor(random() * (pending.length + 1)));
    case "the last":
      return pending.slice(-1);
    case "some": {
      // Few lost, half lost, few left: each image leans its own way.
      const share = random();
      return pending.filter(() => random() < share);
    }
    default:
      return fate satisfies never;
  }
}

function survivors(pending: readonly Edit[], fate: Fate, random: () => number): readonly Edit[] {
  const left = chosen(pending, fate, random);
  if (fate === "torn") return left.map((edit, at) => (at === left.length - 1 ? torn(edit, random) : edit));
  return fate === "some" ? left.map((edit) => (random() < 0.15 ? torn(edit, random) : edit)) : left;
}

/** Some sectors of a write; or its length without its bytes, as a file system that allocates late may leave it. */
function torn(edit: Edit, random: () => number): Edit {
  if (edit.kind === "cut" || edit.bytes.length <= SECTOR) return edit;
  if (random() < 0.2) return { ...edit, bytes: new Uint8Array(edit.bytes.length) };
  const sectors = Math.floor(random() * (edit.bytes.length / SECTOR));
  return { ...edit, bytes: edit.bytes.subarray(0, sectors * SECTOR) };
}

function edited(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (edits.length === 0) return bytes;
  let size = bytes.length;
  let most = size;
  for (const edit of edits) {
    size = edit.kind === "cut" ? edit.size : Math.max(size, edit.at + edit.bytes.length);
    most = Math.max(most, size);
  }
  const result = new Uint8Array(most);
  result.set(bytes);
  let end = bytes.length;
  for (const edit of edits) {
    if (edit.kind === "write") {
      result.set(edit.bytes, edit.at);
      end = Math.max(end, edit.at + edit.bytes.length);
    } else {
      if (edit.size < end) result.fill(0, edit.size, end);
      end = edit.size;
    }
  }
  return result.subarray(0, end);
}
