/** Whether a consumer's inbox was changed by whom it belongs to: one begins, and he alone completes, once. */
import type { InboxRow } from "./journal.ts";
import type { Process } from "./process.ts";
import type { State } from "./state.ts";

/** What is wrong with this change of an entry; null when nothing is. */
export function wrongEntry(state: State, was: InboxRow | null, is: InboxRow | null, by: Process): string | null {
  const own = (row: InboxRow): boolean => row.token !== null && state.handling.get(row.token) === by;
  if (is === null) {
    if (was === null || was.done_at !== null) return null;
    return own(was) || !lives(state, was) ? null : `${by.name} abandoned what ${was.holder} works at`;
  }
  if (was !== null && was.done_at !== null) return "it was begun again although its success was recorded";
  if (is.done_at !== null) return was !== null && own(was) ? null : `${by.name} recorded a success that is not its own`;
  if (was !== null && lives(state, was)) return `${by.name} took over what ${was.holder} works at`;
  if (state.handling.has(is.token ?? "")) return "its token was used before";
  state.handling.set(is.token ?? "", by);
  return null;
}

function lives(state: State, { holder }: InboxRow): boolean {
  return state.processes.get(holder ?? "")?.isAlive() ?? false;
}
