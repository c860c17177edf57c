/**
 * Looks at the database after every transaction, at every start of a command and once a second, and says what must not be. The
 * first thing that he finds ends the story.
 */
import type { Database } from "bun:sqlite";
import { breaches } from "../../../src/store/invariants.ts";
import type { VirtualClock } from "../time.ts";
import type { Command } from "./commands.ts";
import { type AuditRow, type Entry, type Row, seenSince } from "./journal.ts";
import { wrongEntry } from "./inbox.ts";
import { wrongWait } from "./late.ts";
import { isMove, wrongMove } from "./moves.ts";
import type { Process } from "./process.ts";
import { isLive, isOver, newState, type Settling, type State } from "./state.ts";
import { CIRCUIT, CONCURRENCY, OWN_TIME_MS, RETENTION } from "./terms.ts";
import { wrongWhole } from "./whole.ts";

export interface Judge {
  readonly state: State;
  look(by: Process, when: "before" | "after"): void;
  /** What this runner hands over in the transaction that comes. */
  settles(settling: readonly Settling[]): void;
  starts(command: Command): void;
  /** The wall clock was set. */
  stepped(seconds: number): void;
  /** Once a second. */
  pulse(): void;
  /** This process came to its own end. */
  ended(process: Process): void;
  /** What is wrong, whoever finds it. */
  accuse(what: string): void;
  /** Rejects with the first breach. */
  readonly breach: Promise<never>;
  readonly found: () => string | null;
}

/** A claim older than this is renewed before its command starts. */
const STALE_MS = 1_050;
/** How long after the end of its trouble a runner may take to write an outcome. */
const WRITTEN_WITHIN_MS = 6_000;
/** How soon after trouble, or a clock that was set, a runner has renewed its leases. */
const RENEWED_WITHIN_MS = 1_600;

export function judge(db: Database, clock: VirtualClock): Judge {
  const state = newState(clock);
  const verdict = Promise.withResolvers<never>();
  verdict.promise.catch(() => {});
  let found: string | null = null;
  let last = 0;
  let settling: readonly Settling[] = [];

  const accuse = (what: string): void => {
    found ??= `${(clock.monotonicMs() / 1_000).toFixed(3)} s: ${what}`;
    verdict.reject(new Error(found));
  };
  const check = (what: string | null, about: string): void => {
    if (what !== null) accuse(`${about}: ${what}`);
  };

  const enter = (row: Row): void => {
    const twin = [...state.rows.values()].find(({ dedup_key }) => dedup_key !== null && dedup_key === row.dedup_key);
    if (twin !== undefined) accuse(`row ${row.seq} has the dedup key of row ${twin.seq}`);
    if (row.status !== "pending" || row.attempt !== 0) accuse(`row ${row.seq} entered as ${row.status}, attempt ${row.attempt}`);
    state.tallies.set(row.seq, { moves: 1, claims: 0, starts: 0 });
  };
  const move = (was: Row, is: Row, by: Process): void => {
    if (!isMove(was, is)) {
      if (was.next_attempt_at !== is.next_attempt_at && !by.tokens.has(was.lock_token ?? ""))
        accuse(`row ${is.seq}: ${by.name} renewed a claim that is not its own`);
      const claim = state.claims.get(was.lock_token ?? "");
      if (claim !== undefined) claim.renewed = true;
      return;
    }
    const tally = state.tallies.get(is.seq) ?? { moves: 0, claims: 0, starts: 0 };
    tally.moves += 1;
    if (was.status === "delivering") state.attempts += 1;
    if (was.status === "delivering" || is.status === "delivering") state.workedAtMs = clock.monotonicMs();
    if (is.status === "delivering") tally.claims += 1;
    if (is.reason_code === "dispatch.pending.released" || is.reason_code === "dispatch.pending.config_fault") tally.claims -= 1;
    if (is.reason_code === "dispatch.pending.operator_retry") Object.assign(tally, { claims: 0, starts: 0 });
    check(wrongMove(state, was, is, by), `row ${is.seq} went from ${was.status} to ${is.status} (${is.reason_code})`);
    if (is.status !== "delivering") return;
    state.claimed += 1;
    state.claims.set(is.lock_token ?? "", { by, atMs: clock.monotonicMs(), renewed: false, command: null });
    by.tokens.add(is.lock_token ?? "");
  };
  /** What left, left with an audit row of the same transaction, and was old enough or meant. */
  const leave = (rows: readonly Row[], forgotten: number, audits: readonly AuditRow[]): void => {
    const swept = audits.some(({ action }) => action === "dispatch.sweep");
    if (forgotten > 0 && !swept) accuse("an inbox forgot a success without an audit row");
    for (const row of rows) {
      if (row.status === "delivering") state.attempts += 1;
      const purge = audits.find(({ action, target_id }) => action === "dispatch.purge" && (target_id ?? row.id) === row.id);
      if (purge === undefined && !swept) accuse(`row ${row.seq} (${row.status}) is gone without an audit row`);
      if (purge !== undefined && isLive(row, clock.now()) && !purge.details.includes('"forced":true'))
        accuse(`row ${row.seq} was purged while it was live`);
      const keptS = row.status === "delivered" || row.status === "acked" ? RETENTION.deliveredS : RETENTION.deadLetterS;
      if (purge === undefined && (!isOver(row) || row.updated_at + keptS > clock.now() + 0.001))
        accuse(`row ${row.seq} (${row.status}) was swept too early`);
    }
  };
  /** Failures in a row, counted from what the runners hand over. */
  const count = (entries: readonly Entry[]): void => {
    for (const { seq, token, to, outcome } of settling) {
      const applied = entries.some(({ what, was, is }) => what === "row" && was?.lock_token === token && is?.lock_token !== token);
      if (outcome === "ok" && (applied || state.rows.get(seq)?.status === "acked")) state.failures.set(to, 0);
      if (outcome === "failed" && applied) state.failures.set(to, (state.failures.get(to) ?? 0) + 1);
    }
    for (const [to, { failures, open_until }] of state.circuits) {
      const own = state.failures.get(to) ?? 0;
      if (failures !== own) accuse(`destination ${to} failed ${own} times in a row, and ${failures} are noted`);
      if ((open_until !== null) !== own >= CIRCUIT.failures)
        accuse(`destination ${to} failed ${own} times in a row, and its circuit is ${open_until === null ? "closed" : "open"}`);
    }
    settling = [];
  };

  return {
    state,
    accuse,
    breach: verdict.promise,
    found: () => found,
    settles: (all) => {
      settling = all;
    },
    look(by, when) {
      const seen = seenSince(db, last);
      if (when === "before" && seen.entries.length > 0) accuse(`${by.name} wrote outside of a transaction`);
      if (db.inTransaction) accuse("a transaction was left open");
      last = seen.last;
      if (seen.entries.length === 0) return;
      const touched = new Set<number>();
      let forgotten = 0;
      const left: Row[] = [];
      const audits: AuditRow[] = [];
      for (const entry of seen.entries) {
        if (entry.what === "audit" && entry.is !== null) audits.push(entry.is);
        if (entry.what === "audit" && entry.is === null) accuse("an audit row was deleted");
        if (entry.what === "hold" && entry.is === null) state.holds.delete(entry.was?.id ?? 0);
        if (entry.what === "hold" && entry.is !== null) state.holds.set(entry.is.id, entry.is);
        if (entry.what === "circuit" && entry.is === null) state.circuits.delete(entry.was?.deliver_to ?? "");
        if (entry.what === "circuit" && entry.is !== null) {
          state.circuits.set(entry.is.deliver_to, entry.is);
          // A program's own success closes a circuit too.
          if (entry.is.failures === 0 && by.isProgram) state.failures.set(entry.is.deliver_to, 0);
        }
        if (entry.what === "inbox" && entry.was !== null && entry.was.done_at !== null) forgotten += 1;
        if (entry.what === "inbox") check(wrongEntry(state, entry.was, entry.is, by), "an entry of the inbox");
        if (entry.what !== "row") continue;
        const { was, is } = entry;
        if (was === null && is !== null) enter(is);
        if (was !== null && is !== null) move(was, is, by);
        if (was !== null && is === null) left.push(was);
        if (is === null) state.rows.delete(was?.seq ?? 0);
        else state.rows.set(is.seq, is);
        if (is !== null) touched.add(is.seq);
      }
      leave(left, forgotten, audits);
      count(seen.entries);
      check(wrongWhole(db, state, touched), "the tables");
      for (const { what, deliver_to, seq } of breaches(db, clock.now()))
        // Claims in flight are counted by the clock of their moves: set back, it counts too few, which costs nobody his turn.
        if (what !== "flight is not between" || !state.setBack) accuse(`cache of ${deliver_to}, row ${seq}: ${what}`);
    },
    starts(command) {
      const { seq, token, by, startedMs } = command;
      const claim = state.claims.get(token);
      const row = state.rows.get(seq);
      const tally = state.tallies.get(seq);
      if (db.inTransaction) accuse(`the command of row ${seq} started in an open transaction`);
      if (claim === undefined) return accuse(`the command of row ${seq} started without a claim`);
      if (claim.command !== null) accuse(`two commands of row ${seq} started under one claim`);
      if (claim.by !== by) accuse(`the command of row ${seq} started under the claim of ${claim.by.name}`);
      if (row?.status === "delivering" && row.lock_token !== token) accuse(`the command of row ${seq} started after its claim was lost`);
      if (startedMs - claim.atMs > STALE_MS && !claim.renewed)
        accuse(`the command of row ${seq} started long after its claim, and nobody asked whether it was lost`);
      const own = state.commands.filter((other) => other.by === by && !other.isProgram);
      const unwritten = own.filter(
        (other) => other.endedMs === null || (state.rows.get(other.seq)?.lock_token === other.token && startedMs >= other.endedMs),
      );
      if (unwritten.length >= CONCURRENCY)
        accuse(`a command started although its runner had ${unwritten.length} that run or are not written`);
      claim.command = command;
      state.commands.push(command);
      if (tally === undefined || row === undefined) return;
      tally.starts += 1;
      if (tally.starts > row.max_attempts) accuse(`row ${seq} was sent ${tally.starts} times, ${row.max_attempts} are allowed`);
    },
    stepped: (seconds) => {
      state.setBack ||= seconds < 0;
      state.steppedAtMs = clock.monotonicMs();
    },
    ended(process) {
      for (const { seq, token, by, endedMs, isProgram } of state.commands) {
        if (by !== process || isProgram || state.rows.get(seq)?.lock_token !== token) continue;
        if (endedMs === null) accuse(`${by.name} ended while the command of row ${seq} runs`);
        else if (clock.monotonicMs() - by.troubledAtMs() > WRITTEN_WITHIN_MS)
          accuse(`${by.name} ended, and did not write what became of row ${seq}`);
      }
    },
    pulse() {
      const nowMs = clock.monotonicMs();
      check(wrongWait(state), "nobody comes");
      for (const { seq, token, by, startedMs, endedMs, isProgram } of state.commands) {
        if (!by.isAlive() || by.mishaps.length > 0) continue;
        const row = state.rows.get(seq);
        if (endedMs !== null && row?.lock_token === token && nowMs - Math.max(endedMs, by.troubledAtMs()) > WRITTEN_WITHIN_MS)
          accuse(`${by.name} knows what became of row ${seq}, and does not write it`);
        if (endedMs !== null || nowMs - startedMs >= OWN_TIME_MS) continue;
        // A program looks at its clock only when it renews.
        const steppedMs = isProgram && state.steppedAtMs >= startedMs ? nowMs : state.steppedAtMs;
        if (nowMs - Math.max(steppedMs, state.stalledAtMs, by.troubledAtMs()) < RENEWED_WITHIN_MS) continue;
        if (row?.lock_token === token && row.next_attempt_at <= clock.now())
          accuse(`the lease of row ${seq} ran out while its command runs`);
      }
    },
  };
}
