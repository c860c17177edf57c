/** How what is wrong in a settings file is told. */
import { OutboxError } from "../core/errors.ts";
import { escapeControls } from "../core/visible.ts";
import type { Key } from "./kinds.ts";
import { elsewhere } from "./reference.ts";
import type { Problem } from "./schema.ts";
import { shown } from "./shown.ts";

/** A place in the file. Both count from 1. */
export interface Spot {
  readonly line: number;
  readonly column: number;
}

export interface Told {
  readonly spot: Spot;
  readonly message: string;
}

/** Most problems told of one file. */
const MOST = 10;

/** Everything that is wrong in a settings file. The message is the first problem; the hint says that there are more. */
export class SettingsError extends OutboxError {
  /** One line each, in the order of the file, at most ten: `FILE:LINE:COLUMN: WHAT`. */
  readonly problems: readonly string[];
  constructor(file: string, told: readonly Told[]) {
    const inOrder = told.toSorted((a, b) => a.spot.line - b.spot.line || a.spot.column - b.spot.column);
    const lines = inOrder.slice(0, MOST).map(({ spot, message }) => `${escapeControls(file)}:${spot.line}:${spot.column}: ${message}`);
    const more = inOrder.length - 1;
    super("settings", lines[0] ?? `${escapeControls(file)}: wrong`, more > 0 ? `${more} more: outbox config check lists them` : "");
    this.problems = inOrder.length > MOST ? [...lines, `${escapeControls(file)}: and ${inOrder.length - MOST} more`] : lines;
  }
}

/** A problem as a sentence: the name of the setting, then what is wrong with it. */
export function sentence(problem: Problem): string {
  const hint = problem.message === "is no setting" ? elsewhere(problem.path) : null;
  return `${nameOf(problem.path)}${problem.path.length === 0 ? "" : " "}${problem.message}${hint === null ? "" : `; did you mean ${hint}?`}`;
}

/** @example nameOf(["dispatch", "notify_template", 2]) === "dispatch.notify_template[2]" */
export function nameOf(path: readonly Key[]): string {
  const parts = path.map((key, index) => {
    if (typeof key === "number") return `[${key}]`;
    return `${index === 0 ? "" : "."}${/^[\w-]+$/.test(key) ? shown(key) : `"${shown(key)}"`}`;
  });
  return parts.join("");
}
