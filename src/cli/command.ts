/**
 * The one definition of commands and flags, group by group. The parser obeys it, help prints it, the documentation is made from
 * it. Only data: what a command does is loaded when it runs.
 */
import type { CommandSpec } from "./spec.ts";
import { DELIVER } from "./table/deliver.ts";
import { HAND_IN } from "./table/hand_in.ts";
import { LOOK } from "./table/look.ts";
import { RECEIVE } from "./table/receive.ts";
import { SET_UP } from "./table/set_up.ts";
import { STEP_IN } from "./table/step_in.ts";

/** In the order of `outbox --help`. */
export const COMMANDS: readonly CommandSpec[] = [...HAND_IN, ...DELIVER, ...RECEIVE, ...LOOK, ...STEP_IN, ...SET_UP];

/** Headings of `outbox --help`, in its order. */
export const GROUPS: readonly string[] = [...new Set(COMMANDS.map((command) => command.group))];
