/** Rows as JSON: keys are column names; columns that hold JSON are nested, except the payload, which is kept to the letter. */
import type { AdminEvent, Dispatch, Transition } from "../core/dispatch.ts";
import type { Situation } from "../core/explain.ts";
import type { Listed } from "../store/store.ts";

export function listedJson(row: Listed & Situation): object {
  return { ...row, metadata: nested(row.metadata) };
}

export function dispatchJson(row: Dispatch & Situation, history: readonly Transition[], audit: readonly AdminEvent[]): object {
  return { ...row, metadata: nested(row.metadata), history: history.map(transitionJson), audit: audit.map(auditJson) };
}

function transitionJson(transition: Transition): object {
  return { ...transition, evidence_refs: nested(transition.evidence_refs), metadata: nested(transition.metadata) };
}

function auditJson(event: AdminEvent): object {
  return { ...event, details: nested(event.details) };
}

/** The database checks that it is JSON; a program that dropped the checks gets its text back. */
export function nested(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
