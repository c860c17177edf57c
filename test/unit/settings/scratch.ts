/** A directory of our own for settings files, and the two ways to read them. */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OutboxError } from "../../../src/core/errors.ts";
import { type Explained, explain } from "../../../src/settings/complain.ts";
import { placeOf } from "../../../src/settings/place.ts";
import { SettingsError } from "../../../src/settings/problem.ts";
import { interpret } from "../../../src/settings/resolve.ts";
import { decode } from "../../../src/settings/text.ts";
import type { Settings } from "../../../src/settings/settings.ts";

export const UID = process.getuid?.() ?? 0;
const made: string[] = [];

/** A new directory that only we can write, by its real name. A file that makes some says `afterAll(removeAll)`. */
export function directory(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "outbox-settings-")));
  made.push(path);
  return path;
}

/** Removes every directory made so far. Here and not a hook of this module, which all files share: it would run after the first of them. */
export function removeAll(): void {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
}

/** Writes a settings file that is trusted. */
export function write(path: string, content: string | Uint8Array): string {
  writeFileSync(path, content);
  chmodSync(path, 0o600);
  return path;
}

export const PLACE = placeOf("/etc/here", "/home/me", {});

/** What both parsers get of a file with this text. */
function decoded(text: string): string {
  return decode(new TextEncoder().encode(text), "F");
}

/** The text as every command but `enqueue` and `revive` reads it. */
export function careful(text: string): Explained {
  return explain({ file: "F", origin: "--config", text: decoded(text), place: PLACE });
}

/** The text as `enqueue` and `revive` read it; null where they would ask for the words of an error. */
export function quick(text: string): Settings | null {
  try {
    const interpreted = interpret(Bun.YAML.parse(decoded(text)), PLACE);
    return "settings" in interpreted ? interpreted.settings : null;
  } catch {
    return null;
  }
}

/** What is told of a wrong file. */
export function problems(text: string): readonly string[] {
  try {
    careful(text);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

/** The trouble that `act` ends in. */
export async function trouble(act: () => unknown): Promise<OutboxError> {
  try {
    await act();
  } catch (error) {
    if (error instanceof OutboxError) return error;
    throw error;
  }
  throw new Error("it went well");
}
