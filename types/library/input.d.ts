/** What a program passes, checked where the types alone would have to be believed: a wrong value must not become a silent default. */
import { type DispatchRef } from "../core/dispatch.js";
import { OutboxError } from "../core/errors.js";
/** What a named value has to be. */
export type Check = (value: unknown) => string | null;
export declare const boolean: Check;
export declare const whole: Check;
export declare const number: Check;
export declare const time: Check;
export declare const text: Check;
export declare const texts: Check;
export declare const signal: Check;
/**
 * Checks a record of options. What is undefined is not given.
 * @param what as in "the options of retry"
 * @throws OutboxError `data`, naming what is wrong
 */
export declare function checkOptions(what: string, given: unknown, checks: Readonly<Record<string, Check>>): void;
/** Null: no dispatch can have this id. @throws OutboxError `data` for what is neither text nor number */
export declare function refOf(id: unknown): DispatchRef | null;
/** @throws OutboxError `data` */
export declare function checkToken(token: unknown): void;
export declare function nameOf(value: unknown): string;
export declare function bad(message: string, hint?: string): OutboxError;
