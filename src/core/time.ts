/**
 * Points in time as people write and read them. Pure: "now" and the local zone come from the caller. A local time that
 * the clock skips or shows twice is refused, because every guess would be an hour wrong for somebody.
 */
import { parseDuration } from "./duration.ts";
import { OutboxError } from "./errors.ts";
import type { Zone } from "./seams.ts";

/** Latest instant accepted, epoch seconds: the end of the year 9999. */
export const MAX_TIME = 253_402_300_799;

const DAY_S = 86_400;
const FORMS = "write epoch seconds, 2026-12-24T18:00:00Z, 2026-12-24, 2026-12-24 18:00 or 18:00";

export interface TimeContext {
  /** Epoch seconds; `18:00` is on this day. */
  readonly now: number;
  readonly zone: Zone;
  /** Whether a duration is read as that long ago (`--since 2h`). */
  readonly past: boolean;
}

/** Year, month 1-12, day, hour, minute, second as a wall clock shows them. */
interface Civil {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/**
 * Reads a point in time.
 * @returns epoch seconds, 0 to MAX_TIME
 * @throws OutboxError `usage`
 * @example parseTime("2026-12-24T18:00:00+01:00", context) === 1798131600
 */
export function parseTime(text: string, context: TimeContext): number {
  const trimmed = text.trim();
  const epochS = epochSeconds(trimmed) ?? withOffset(trimmed, text) ?? local(trimmed, text, context) ?? ago(trimmed, text, context);
  if (epochS >= 0 && epochS <= MAX_TIME) return epochS;
  const milliseconds = epochS / 1_000 > 0 && epochS / 1_000 <= MAX_TIME && epochSeconds(trimmed) !== null;
  throw new OutboxError(
    "usage",
    `"${text}" is outside the years 1970 to 9999`,
    milliseconds ? `in seconds it is ${trimmed.slice(0, -3)}` : FORMS,
  );
}

/**
 * Writes an instant for people: local time and its offset, to the second.
 * @example formatTime(1798131600, berlin) === "2026-12-24 18:00:00 +01:00"
 */
export function formatTime(epochS: number, zone: Zone): string {
  const whole = Math.floor(epochS);
  const offset = zone.utcOffsetS(whole);
  const at = civilOf(whole + offset);
  return `${date(at)} ${two(at.hour)}:${two(at.minute)}:${two(at.second)} ${formatOffset(offset)}`;
}

function epochSeconds(text: string): number | null {
  return /^[0-9]{1,17}(\.[0-9]+)?$/.test(text) ? Number(text) : null;
}

/** RFC 3339; the seconds may be left out, as in ISO 8601. */
function withOffset(text: string, typed: string): number | null {
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)? ?(?:([Zz])|([+-])(\d\d):(\d\d))$/.exec(text);
  if (match === null) return null;
  const at = checked(
    { year: num(match[1]), month: num(match[2]), day: num(match[3]), hour: num(match[4]), minute: num(match[5]), second: num(match[6]) },
    typed,
  );
  const [hours, minutes] = [num(match[10]), num(match[11])];
  if (hours > 23 || minutes > 59) throw noSuchTime(typed);
  const offset = match[8] === undefined ? (match[9] === "-" ? -1 : 1) * (hours * 3_600 + minutes * 60) : 0;
  return secondsOf(at) - offset + num(match[7]);
}

function local(text: string, typed: string, { now, zone }: TimeContext): number | null {
  const match = /^(?:(\d{4})-(\d\d)-(\d\d))?(?:(^|[Tt ])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text);
  if (match === null || text === "") return null;
  const today = civilOf(Math.floor(now) + zone.utcOffsetS(Math.floor(now)));
  const day = match[1] === undefined ? today : { year: num(match[1]), month: num(match[2]), day: num(match[3]) };
  const at = checked(
    { year: day.year, month: day.month, day: day.day, hour: num(match[5]), minute: num(match[6]), second: num(match[7]) },
    typed,
  );
  return instantOf(at, typed, zone);
}

/** The one instant at which the local clock shows this. */
function instantOf(at: Civil, typed: string, zone: Zone): number {
  const shown = secondsOf(at);
  // A change lies within a day of here or it does not matter; later offset changes are found by looking again from there.
  const nearby = [zone.utcOffsetS(shown - DAY_S), zone.utcOffsetS(shown + DAY_S)];
  const offsets = [...new Set([...nearby, ...nearby.map((offset) => zone.utcOffsetS(shown - offset))])];
  const [found, second] = offsets.filter((offset) => zone.utcOffsetS(shown - offset) === offset).toSorted((a, b) => b - a);
  if (found !== undefined && second === undefined) return shown - found;
  const both =
    found !== undefined && second !== undefined ? [found, second] : [zone.utcOffsetS(shown - DAY_S), zone.utcOffsetS(shown + DAY_S)];
  const [first, other] = both.map(formatOffset);
  const what =
    found === undefined
      ? `does not exist in local time: the clock goes from ${first} to ${other}`
      : `exists twice in local time: the clock goes from ${first} to ${other}`;
  const written = `${date(at)}T${two(at.hour)}:${two(at.minute)}:${two(at.second)}`;
  throw new OutboxError("usage", `"${typed}" ${what}`, `write ${written}${first} or ${written}${other}`);
}

function ago(text: string, typed: string, { now, past }: TimeContext): number {
  if (!/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(text))
    throw new OutboxError("usage", `"${typed}" is not a time`, past ? `${FORMS}, or how long ago: 2h` : FORMS);
  if (!past) throw new OutboxError("usage", `"${typed}" is a duration, not a time`, FORMS);
  return now - parseDuration(text) / 1_000;
}

function checked(at: Civil, typed: string): Civil {
  const inRange =
    at.month >= 1 &&
    at.month <= 12 &&
    at.day >= 1 &&
    at.day <= daysIn(at.year, at.month) &&
    at.hour <= 23 &&
    at.minute <= 59 &&
    at.second <= 59;
  if (!inRange) throw noSuchTime(typed);
  return at;
}

function noSuchTime(typed: string): OutboxError {
  return new OutboxError("usage", `"${typed}" is no time that a clock shows`, FORMS);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Seconds from 1970-01-01 00:00:00 to what the clock shows, as if it were UTC. Years begin in March here, so that a leap day comes last. */
function secondsOf(at: Civil): number {
  const year = at.month > 2 ? at.year : at.year - 1;
  const month = (at.month + 9) % 12;
  const days =
    year * 365 + Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400) + Math.floor((month * 306 + 5) / 10) + at.day - 1;
  // 719,468 days lie between 0000-03-01 and 1970-01-01.
  return (days - 719_468) * DAY_S + at.hour * 3_600 + at.minute * 60 + at.second;
}

/** The reverse of `secondsOf`, by estimating the year and correcting it. */
function civilOf(seconds: number): Civil {
  const day = Math.floor(seconds / DAY_S);
  const rest = seconds - day * DAY_S;
  const startOf = (year: number, month: number): number => secondsOf({ year, month, day: 1, hour: 0, minute: 0, second: 0 }) / DAY_S;
  let year = 1970 + Math.floor(day / 365.2425);
  while (startOf(year, 1) > day) year -= 1;
  while (startOf(year + 1, 1) <= day) year += 1;
  let month = 12;
  while (startOf(year, month) > day) month -= 1;
  return {
    year,
    month,
    day: day - startOf(year, month) + 1,
    hour: Math.floor(rest / 3_600),
    minute: Math.floor((rest % 3_600) / 60),
    second: rest % 60,
  };
}

/** @example formatOffset(-12_600) === "-03:30" */
export function formatOffset(offsetS: number): string {
  const minutes = Math.round(Math.abs(offsetS) / 60);
  return `${offsetS < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function date(at: { readonly year: number; readonly month: number; readonly day: number }): string {
  return `${String(at.year).padStart(4, "0")}-${two(at.month)}-${two(at.day)}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** An absent group counts as 0. */
function num(group: string | undefined): number {
  return group === undefined ? 0 : Number(group);
}
