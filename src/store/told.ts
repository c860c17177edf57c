/**
 * What was last told to a person, over all runners: a cron that starts each minute must not mail each minute. Told when it begins
 * or changes, hourly while it lasts, and when it ends.
 */
import { type Handle, statement } from "./statement.ts";

/** How often a thing that lasts is told, in seconds. */
const AGAIN_AFTER_S = 3_600;

/**
 * Notes that something needs a person.
 * @param topic what it is about: `circuit seat-1`
 * @param text what would be told
 * @param now epoch seconds
 * @returns whether to tell it now
 */
export function note(db: Handle, topic: string, text: string, now: number): "tell" | "quiet" {
  // Also after a clock that was set back: a time ahead says nothing about when it was told.
  const { changes } = statement(
    db,
    `INSERT INTO main.dispatch_told (topic, text, since, told_at) VALUES ($topic, $text, $now, $now)
     ON CONFLICT (topic) DO UPDATE SET text = excluded.text, told_at = $now WHERE text <> excluded.text OR abs($now - told_at) >= $again`,
  ).run({ topic, text, now, again: AGAIN_AFTER_S });
  return changes === 1 ? "tell" : "quiet";
}

/** It is over. @returns whether it was standing, so that its end is told once */
export function over(db: Handle, topic: string): boolean {
  return statement(db, `DELETE FROM main.dispatch_told WHERE topic = $topic`).run({ topic }).changes === 1;
}

/** The topics that stand and begin so. */
export function standing(db: Handle, prefix: string): string[] {
  return statement<{ topic: string }>(
    db,
    `SELECT topic FROM main.dispatch_told WHERE substr(topic, 1, length($prefix)) = $prefix ORDER BY topic`,
  )
    .all({ prefix })
    .map((row) => row.topic);
}
