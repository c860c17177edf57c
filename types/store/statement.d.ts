/** How this room prepares its SQL. Every statement is a literal beside the function that runs it. */
import type { Database, Statement } from "bun:sqlite";
export type Handle = Database;
/** Named parameters, bare names: Bun takes them on strict and other handles alike. */
export type Params = Record<string, string | number | null>;
/** The prepared statement, cached by the handle. A program may have opened it with `safeIntegers`; our integers are small. */
export declare function statement<Row>(db: Handle, sql: string): Statement<Row, [Params]>;
