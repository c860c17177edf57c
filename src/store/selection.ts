/** Filters, turned into a WHERE clause in one place. All that are given must match; a repeated one means any of its values. */
import type { Status } from "../core/lifecycle.ts";
import type { Params } from "./statement.ts";

export interface Selection {
  readonly status?: readonly Status[];
  readonly kind?: readonly string[];
  readonly to?: readonly string[];
  readonly dedupKey?: readonly string[];
  readonly orderingKey?: readonly string[];
  /** Last word of the reason of the last move: `max_attempts`. */
  readonly reason?: readonly string[];
  /** Last move at or after, epoch seconds. */
  readonly since?: number;
  /** Last move before, epoch seconds. */
  readonly before?: number;
}

export function whereOf(selection: Selection): { readonly where: string; readonly params: Params } {
  const terms: string[] = [];
  const params: Params = {};
  const anyOf = (expression: string, name: string, values: readonly string[] | undefined): void => {
    if (values === undefined || values.length === 0) return;
    terms.push(`${expression} IN (SELECT value FROM json_each($${name}))`);
    params[name] = JSON.stringify(values);
  };
  anyOf("status", "status", selection.status);
  anyOf("kind", "kind", selection.kind);
  anyOf("deliver_to", "deliver_to", selection.to);
  anyOf("dedup_key", "dedup_key", selection.dedupKey);
  anyOf("ordering_key", "ordering_key", selection.orderingKey);
  // A reason is dispatch.STATUS.WORD; the word holds no dot.
  anyOf("substr(reason_code, instr(substr(reason_code, 10), '.') + 10)", "reason", selection.reason);
  if (selection.since !== undefined) {
    terms.push("updated_at >= $since");
    params["since"] = selection.since;
  }
  if (selection.before !== undefined) {
    terms.push("updated_at < $before");
    params["before"] = selection.before;
  }
  return { where: terms.length === 0 ? "TRUE" : terms.join(" AND "), params };
}
