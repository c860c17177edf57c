/** What failed, as SQLite says it. What that means to a person is in `trouble.ts`, which is loaded when something has failed. */

/** Primary result code of a SQLite error, null for any other error. */
export function sqliteCode(error: unknown): number | null {
  const errno = extendedCode(error);
  return errno === null ? null : errno & 0xff;
}

export function extendedCode(error: unknown): number | null {
  if (!(error instanceof Error) || error.name !== "SQLiteError") return null;
  const { errno } = error as Error & { errno?: unknown };
  return typeof errno === "number" ? errno : null;
}

/** `asTrouble()` for those who can wait for it. */
export async function troubleOf(error: unknown, path: string): Promise<unknown> {
  const { asTrouble } = await import("./trouble.ts");
  return asTrouble(error, path);
}
