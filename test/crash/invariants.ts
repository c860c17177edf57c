/** What holds in every database at every moment, and what the commands said of themselves. */
import { expect } from "bun:test";
import { EDGES } from "../../src/core/lifecycle.ts";
import type { Workstation } from "../cli/running.ts";

export interface Execution {
  readonly id: string;
  readonly attempt: number;
  readonly ended: boolean;
  /** Lines of the log, as an order. */
  readonly from: number;
  readonly to: number;
}

/** Every command that noted `start ID ATTEMPT PID` in the file `log`, and perhaps `end` with the same. */
export function executions(place: Workstation): Execution[] {
  const lines = place.lines("log");
  return lines.flatMap((line, from) => {
    const [what, id = "", attempt, pid] = line.split(" ");
    if (what !== "start") return [];
    const to = lines.indexOf(`end ${id} ${attempt} ${pid}`);
    return [{ id, attempt: Number(attempt), ended: to !== -1, from, to: to === -1 ? lines.length : to }];
  });
}

export function check(place: Workstation): void {
  expect(place.sql("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  const history = Map.groupBy(place.history(), ({ entity_id }) => entity_id);
  const commands = Map.groupBy(executions(place), ({ id }) => id);
  for (const row of place.rows()) {
    const moves = history.get(row.id) ?? [];
    // One history row a move, each of them in the lifecycle, without a gap.
    expect(moves.map(({ previous_status }) => previous_status)).toEqual([null, ...moves.slice(0, -1).map(({ status }) => status)]);
    expect(moves.at(-1)).toMatchObject({ status: row.status, reason_code: row.reason_code });
    for (const { previous_status, status, reason_code } of moves)
      expect(EDGES.some(({ from, to, reason }) => from === previous_status && to === status && reason === reason_code)).toBeTrue();
    // No more sends than allowed; each has its claim; the next one begins when the one before has ended.
    const own = commands.get(row.id) ?? [];
    expect(row.attempt).toBeLessThanOrEqual(row.max_attempts);
    expect(own.length).toBeLessThanOrEqual(moves.filter(({ status }) => status === "delivering").length);
    expect(own.length).toBeLessThanOrEqual(row.max_attempts);
    for (const [at, { from }] of own.entries()) expect(own[at - 1]?.to ?? -1).toBeLessThan(from);
    expect(own.some(({ ended }) => ended)).toBe(own.length > 0);
    if (row.status === "delivered") expect(own.length).toBeGreaterThan(0);
  }
  expect([...commands.keys()].filter((id) => !history.has(id))).toEqual([]);
}
