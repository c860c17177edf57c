/** Flag values beyond text. What cannot be read is a usage error that names its flag. */
import { parseRef } from "../core/dispatch.ts";
import { parseDuration } from "../core/duration.ts";
import { OutboxError } from "../core/errors.ts";
import { parseTime } from "../core/time.ts";
import type { Io } from "./io.ts";
import { escapeControls, shortened } from "./output.ts";
import type { Args } from "./parse.ts";
import { isUtc } from "./zone.ts";

/** Nine digits are more than any of these flags can use. */
const MOST = 999_999_999;

/** A whole number from `least` on. */
export function wholeNumber(args: Args, flag: string, least: number): number | undefined {
  const text = args.text(flag);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!/^[0-9]{1,9}$/.test(text) || number < least)
    throw new OutboxError("usage", `--${flag} "${text}" is not a whole number from ${least} to ${MOST}`, "write digits only");
  return number;
}

/** A duration, in milliseconds. */
export function duration(args: Args, flag: string): number | undefined {
  const text = args.text(flag);
  return text === undefined ? undefined : named(flag, () => parseDuration(text));
}

/** A rate such as `5/s`, as the seconds between two. */
export function rate(args: Args, flag: string): number | undefined {
  const text = args.text(flag);
  if (text === undefined) return undefined;
  const [, number, unit] = /^([1-9][0-9]{0,5})\/([smhd])$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw new OutboxError("usage", `--${flag} "${text}" is no rate`, "write how many per s, m, h or d: 5/s");
  return parseDuration(`1${unit}`) / 1_000 / Number(number);
}

/** A time in epoch seconds. `past`: a duration means that long ago. */
export function time(args: Args, flag: string, io: Io, past = false): number | undefined {
  const text = args.text(flag);
  if (text === undefined) return undefined;
  let isLocal = false;
  const zone = { utcOffsetS: (epochS: number): number => ((isLocal = true), io.zone.utcOffsetS(epochS)) };
  const epochS = named(flag, () => parseTime(text, { now: io.clock.now(), zone, past }));
  if (isLocal) warnOfZone(io);
  return epochS;
}

/** The system takes a zone that it does not know for UTC without a word. */
function warnOfZone(io: Io): void {
  const name = io.env["TZ"] ?? "";
  if (name === "" || warned.has(io) || !isUtc(io.zone) || isZone(name.replace(/^:/, ""))) return;
  warned.add(io);
  io.err(
    escapeControls(
      `outbox: TZ "${shortened(name)}" is no time zone known here, so local times are read as UTC; name one such as Europe/Berlin, or write the time with its offset`,
    ),
  );
}
const warned = new WeakSet<Io>();

function isZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }) instanceof Intl.DateTimeFormat;
  } catch {
    return false;
  }
}

/** A time given as `--not-before T` or `--delay D` from now; the parser lets only one of them through. */
export function timeOrDelay(args: Args, timeFlag: string, delayFlag: string, io: Io): number | undefined {
  const delayMs = duration(args, delayFlag);
  return delayMs === undefined ? time(args, timeFlag, io) : io.clock.now() + delayMs / 1_000;
}

/** What `--after ID` means as a number in the order of lists: only `seq` says where a page ended. */
export function afterSeq(text: string): { readonly seq: number } | { readonly id: string } {
  const ref = parseRef(text);
  if (ref === null) throw new OutboxError("usage", `--after "${text}" is no ID`, "write the number or the 32 hex digits that ls prints");
  return ref;
}

function named<T>(flag: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof OutboxError)) throw error;
    throw new OutboxError(error.kind, `--${flag} ${error.message}`, error.hint);
  }
}
