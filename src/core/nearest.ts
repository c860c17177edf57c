/** Which known name somebody meant. */

/**
 * The known name that few slips lead to (a letter too many, too few or another, two swapped), or that `word` begins;
 * null when none is close. `maxAttempts` and `max_attempts` are near `max-attempts`.
 * @example nearest("enqeue", ["enqueue", "revive"]) === "enqueue"
 */
export function nearest(word: string, known: Iterable<string>): string | null {
  const wanted = plain(word);
  let best: string | null = null;
  // A third of the letters may differ.
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of known) {
    // What somebody began to type is as near as a single slip.
    const begun = wanted.length >= 3 && plain(name).startsWith(wanted);
    // Also keeps a word of a megabyte from costing a megabyte of work for each name.
    if (!begun && Math.abs(name.length - wanted.length) >= fewest) continue;
    const slips = begun ? 1 : distance(wanted, plain(name));
    if (slips < fewest) [best, fewest] = [name, slips];
  }
  return best;
}

/** One spelling of a name for the three ways to join its words. */
function plain(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, "$1-$2")
    .toLowerCase()
    .replaceAll("_", "-");
}

/** Edits between two words; swapping neighbours counts as one (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const edits = Math.min(at(above, column) + 1, at(current, column - 1) + 1, at(above, column - 1) + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(swapped ? Math.min(edits, at(before, column - 2) + 1) : edits);
    }
    [before, above] = [above, current];
  }
  return at(above, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
