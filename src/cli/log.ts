/** The runner's log: one line an event on stderr, as text or JSON. */
import { createConsola, LogLevels } from "consola/core";
import { escapeControls, jsonLine } from "./output.ts";
import type { Line } from "./telling.ts";

export interface LogStyle {
  readonly level: "error" | "warn" | "info" | "debug";
  /** `plain`: as other commands complain, for cron's mail. */
  readonly format: "plain" | "text" | "json";
}

const LEVELS = { error: LogLevels.error, warn: LogLevels.warn, info: LogLevels.info, debug: LogLevels.debug } as const;

/**
 * @param now epoch seconds
 * @param write one line to stderr
 */
export function createLog(style: LogStyle, now: () => number, write: (line: string) => void): (line: Line) => void {
  const log = createConsola({
    level: LEVELS[style.level],
    throttle: 0, // else the sixth equal line within a second vanishes
    reporters: [{ log: ({ args }) => write(formatted(args[0] as Line, new Date(now() * 1_000), style.format)) }],
  });
  return (line) => log[line.level](line);
}

function formatted({ level, text, fields }: Line, date: Date, format: LogStyle["format"]): string {
  switch (format) {
    case "plain":
      return escapeControls(`outbox: ${text}`);
    case "text":
      return escapeControls(`${date.toISOString()} ${level.padEnd(5)} ${text}`);
    case "json":
      return jsonLine({ time: date.toISOString(), level, text, ...fields }).trimEnd();
    default:
      return format satisfies never;
  }
}
