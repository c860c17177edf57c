/** Whether a claim was lawful, worked out from the rows alone, without any cache and without the claim's own SQL. */
import type { Row } from "./journal.ts";
import { isLive, isOver, type State } from "./state.ts";
import { LEASE_S, OWN_TIME_MS, PER_DESTINATION, STRAY_LEASE_S } from "./terms.ts";

/** What is wrong with this claim; null when nothing is. */
export function wrongClaim(state: State, was: Row, is: Row): string | null {
  const at = is.updated_at;
  const token = is.lock_token ?? "";
  const tally = state.tallies.get(is.seq);
  const others = [...state.rows.values()].filter(({ seq }) => seq !== is.seq);
  if (state.claims.has(token)) return "its lock token was used before";
  if (was.next_attempt_at > at) return was.status === "delivering" ? "its lease was not over" : "it was not due";
  if (is.attempt !== was.attempt + 1) return `the attempt number went from ${was.attempt} to ${is.attempt}`;
  if (was.attempt >= was.max_attempts || (tally !== undefined && tally.claims > was.max_attempts)) return "its attempts were used up";
  if (was.expires_at !== null && was.expires_at <= at) return "its time was over";
  if ([...state.holds.values()].some((hold) => (hold.ends_at === null || hold.ends_at > at) && names(hold, was))) return "it was held";
  if (was.ordering_key !== null) {
    const mates = others.filter(({ ordering_key }) => ordering_key === was.ordering_key);
    const earlier = mates.find((mate) => mate.seq < was.seq && !isOver(mate));
    if (earlier !== undefined) return `row ${earlier.seq} of its key, which is earlier, had not come to its end`;
    const beside = mates.find((mate) => isLive(mate, at));
    if (beside !== undefined) return `row ${beside.seq} of its key was live`;
  }
  const live = others.filter((other) => other.deliver_to === was.deliver_to && isLive(other, at)).length;
  const openUntil = state.circuits.get(was.deliver_to)?.open_until ?? null;
  if (openUntil !== null && openUntil > at) return "the circuit of its destination was open";
  if (openUntil !== null && live > 0) return "the open circuit of its destination had its probe already";
  if (live >= PER_DESTINATION) return `${live} other claims of its destination were live`;
  return was.status === "delivering" ? wrongTakeover(state, was, at) : null;
}

function names(hold: { deliver_to: string | null; kind: string | null; ordering_key: string | null }, row: Row): boolean {
  return (
    (hold.deliver_to ?? row.deliver_to) === row.deliver_to &&
    (hold.kind ?? row.kind) === row.kind &&
    (hold.ordering_key ?? row.ordering_key) === row.ordering_key
  );
}

/** Taken from another claim whose lease was over: why was it? */
function wrongTakeover(state: State, was: Row, at: number): string | null {
  const before = state.claims.get(was.lock_token ?? "");
  if (before === undefined || !before.by.isAlive()) return null;
  const nowMs = state.clock.monotonicMs();
  const { command, by } = before;
  if (was.next_attempt_at + (was.kind === "stray" ? STRAY_LEASE_S : LEASE_S) > at)
    return "its runner lives, and one more lease had not passed";
  const troubledMs = by.troubledAtMs();
  const began = command?.startedMs ?? before.atMs;
  if (troubledMs >= before.atMs || state.steppedAtMs >= before.atMs) return null;
  return command === null || command.endedMs !== null || nowMs - began < OWN_TIME_MS
    ? "it was taken from a runner that lived and had no trouble"
    : null;
}
