/** Numbers of bytes as people write them: `8KiB`, `1MiB`, `512B`, `4096`. */
import { OutboxError } from "../core/errors.ts";

const UNITS = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 } as const;

/**
 * Reads a size.
 * @returns bytes, a whole number
 * @throws OutboxError `usage`
 * @example parseSize("8KiB") === 8_192
 */
export function parseSize(text: string): number {
  const match = /^([0-9]+(?:\.[0-9]+)?)\s*([KMG]iB|B)?$/.exec(text.trim());
  if (match === null) throw new OutboxError("usage", `"${text}" is not a size`, "write a number with B, KiB, MiB or GiB, for example 1MiB");
  const bytes = Number(match[1]) * UNITS[(match[2] ?? "B") as keyof typeof UNITS];
  if (!Number.isInteger(bytes)) throw new OutboxError("usage", `"${text}" is not a whole number of bytes`, "write it in a smaller unit");
  return bytes;
}

/**
 * Writes a size the way `parseSize` reads it, exactly.
 * @example formatSize(8_192) === "8KiB"
 */
export function formatSize(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"] as const) if (bytes > 0 && bytes % UNITS[unit] === 0) return `${bytes / UNITS[unit]}${unit}`;
  return `${bytes}B`;
}
