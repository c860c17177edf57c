/** What is allowed in a settings file and yet worth a warning. Pure. */
import { type Placeholder, placeholderOf } from "../core/template.ts";
import type { Key } from "./kinds.ts";
import { nameOf } from "./problem.ts";
import type { Loaded } from "./settings.ts";

export interface Advice {
  /** Line of the file; null: it is about what the file does not say. */
  readonly line: number | null;
  readonly message: string;
}

/** What an argv shows to every user of the machine, and where the command finds it unseen. */
const UNSEEN: Partial<Record<Placeholder, string>> = {
  payload: "leave it out and read the envelope from stdin",
  body: "leave it out and read the envelope from stdin",
  text: "leave it out and read the envelope from stdin",
  ack_token: "leave it out and read OUTBOX_ACK_TOKEN from the environment",
};

/** Warnings in the order of the file; one about the whole file comes first. */
export function advice(loaded: Loaded, lineOf: (path: readonly Key[]) => number | null): Advice[] {
  const { default: own, routes } = loaded.settings.dispatch;
  const templates: (readonly [readonly Key[], readonly string[] | null])[] = [[["dispatch", "notify_template"], own.notifyTemplate]];
  for (const [kind, route] of routes) templates.push([["dispatch", "routes", kind, "notify_template"], route.notifyTemplate]);

  const given: Advice[] = [];
  if (templates.every(([, template]) => template === null))
    given.push({ line: null, message: "dispatch.notify_template is not set, so nothing can be delivered" });
  for (const [path, template] of templates) {
    const line = lineOf(path);
    // A route without a template of its own has been warned of where it is written.
    if (line !== null && template !== null)
      given.push(...aboutTemplate(template).map((message) => ({ line, message: `${nameOf(path)} ${message}` })));
  }
  return given.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

function aboutTemplate(template: readonly string[]): string[] {
  const warnings: string[] = [];
  const names = template.map((element, index) => (index === 0 ? null : placeholderOf(element)));
  const guard = template.indexOf("--", 1);
  const unguarded = names.find((name, index) => name !== null && (guard === -1 || index < guard));
  if (unguarded != null) warnings.push(`has {${unguarded}} with no -- before it: a value that begins with - would be taken for an option`);
  for (const name of new Set(names)) {
    const instead = name === null ? undefined : UNSEEN[name];
    if (instead !== undefined) warnings.push(`shows {${name}} to every user of this machine, as all arguments are; ${instead}`);
  }
  return warnings;
}
