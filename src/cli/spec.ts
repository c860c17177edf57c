/** What a command is: the shape of the table in `command.ts`, which parser, help and documentation read. */
import type { Io } from "./io.ts";
import type { Args } from "./parse.ts";

export type FlagSpec =
  | { readonly kind: "boolean"; readonly about: string; readonly group?: string }
  | {
      /** `list`: may be repeated. */
      readonly kind: "string" | "list";
      /** Placeholder of its value, as help prints it: `JSON`. */
      readonly value: string;
      readonly about: string;
      /** Heading under which help lists it; "Options" without. */
      readonly group?: string;
      /** An empty value is refused unless this says otherwise. */
      readonly mayBeEmpty?: true;
    };

/** An argument without a flag. */
export interface WordSpec {
  /** As help prints it: `ID`. */
  readonly name: string;
  readonly about: string;
  readonly min: number;
  readonly max: number;
  readonly choices?: readonly string[];
}

export interface CommandSpec {
  /** One word, or two: `inbox run`. */
  readonly name: string;
  /** Heading under which `outbox --help` lists it. */
  readonly group: string;
  /** One line, imperative, without a full stop. */
  readonly summary: string;
  /** How to call it, without the program's name: `ack [ID TOKEN]`. */
  readonly usage: string;
  /** Sentences below the usage line; paragraphs are wrapped. */
  readonly about?: readonly string[];
  readonly words: readonly WordSpec[];
  /** A command of the user's own, which takes everything after `--`, to the letter. At least its name must be there. */
  readonly rest?: { readonly name: string; readonly about: string };
  readonly flags: Readonly<Record<string, FlagSpec>>;
  /** Groups of flags of which at most one may be given. */
  readonly excludes?: readonly (readonly string[])[];
  readonly examples: readonly { readonly line: string; readonly about: string }[];
  /** Exit codes worth naming in its help, besides 0 and 2. */
  readonly exits: readonly number[];
  /** Loads what it does; only the command that runs is loaded. */
  readonly load: () => Promise<CommandModule>;
}

export interface CommandModule {
  /**
   * Does the work and answers the exit code.
   * @throws OutboxError what a person can mend; `cli/run.ts` turns it into a line and a code
   */
  run(args: Args, io: Io): Promise<number>;
}
