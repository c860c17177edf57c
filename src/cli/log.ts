/** The runner's log: one line an event on stderr, as text or JSON. */
import { createConsola, LogLevels } from "consola/core";
import { escapeControls } from "./output.ts";
import type { Line } from "./telling.ts";

export interface LogStyle {
  readonly level: "error" | "warn" | "info" | "debug";
  /** `plain`: as other commands complain, for cron's mail. */
  readonly format: "plain" | "text" | "json";
}

const LEVELS = { error: LogLevels.error, warn: LogLevels.warn, info: LogLevels.info, debug: LogLevels.debug } as const;

/** @param write one line to stderr */
export function createLog(style: LogStyle, write: (line: string) => void): (line: Line) => void {
  const log = createConsola({
    level: LEVELS[style.level],
    throttle: 0, // else the sixth equal line within a second vanishes
    reporters: [{ log: ({ args, date }) => write(formatted(args[0] as Line, date, style.format)) }],
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
      return escapeControls(JSON.stringify({ time: date.toISOString(), level, text, ...fields }));
    default:
      return format satisfies never;
  }
}
