/** What a program passes, checked where the types alone would have to be believed: a wrong value must not become a silent default. */
import { type DispatchRef, parseRef } from "../core/dispatch.ts";
import { OutboxError } from "../core/errors.ts";
import { textProblem } from "../core/text.ts";
import { MAX_TIME } from "../core/time.ts";

/** What a named value has to be. */
export type Check = (value: unknown) => string | null;

export const boolean: Check = (value) => (typeof value === "boolean" ? null : "is neither true nor false");
export const whole: Check = (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? null : "is not a whole number, 0 or more");
export const number: Check = (value) => (typeof value === "number" && !Number.isNaN(value) ? null : "is not a number");
export const time: Check = (value) =>
  typeof value === "number" && value >= 0 && value <= MAX_TIME ? null : "is not a time in epoch seconds between 1970 and 9999";
export const text: Check = (value) => (typeof value === "string" ? textProblem(value, 255) : "is not a text");
export const texts: Check = (value) =>
  (Array.isArray(value) ? value : [value]).every((each) => typeof each === "string") ? null : "is neither a text nor a list of texts";
export const signal: Check = (value) => (value instanceof AbortSignal ? null : "is no AbortSignal");

/**
 * Checks a record of options. What is undefined is not given.
 * @param what as in "the options of retry"
 * @throws OutboxError `data`, naming what is wrong
 */
export function checkOptions(what: string, given: unknown, checks: Readonly<Record<string, Check>>): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw bad(`${what} are ${nameOf(given)}, not an object`);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) throw bad(`"${name}" is none of ${what}`, `they are ${Object.keys(checks).join(", ")}`);
    const problem = check(value);
    if (problem !== null) throw bad(`${name} ${problem}`);
  }
}

/** Null: no dispatch can have this id. @throws OutboxError `data` for what is neither text nor number */
export function refOf(id: unknown): DispatchRef | null {
  if (typeof id !== "string" && typeof id !== "number") throw bad(`the id is ${nameOf(id)}, neither a text nor a number`);
  return parseRef(String(id));
}

/** @throws OutboxError `data` */
export function checkToken(token: unknown): void {
  if (typeof token !== "string")
    throw bad(`the token is ${nameOf(token)}, not a text`, "it is the ack_token of the answer, and in the envelope");
}

export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export function bad(message: string, hint = ""): OutboxError {
  return new OutboxError("data", message, hint);
}
