/** One dispatch for a person: the row, the envelope, each attempt with its output, the history, what operators did. */
import type { AdminEvent, Transition } from "../core/dispatch.ts";
import { shortDuration } from "../core/duration.ts";
import { nextMove } from "../core/explain.ts";
import { shortReason } from "../core/lifecycle.ts";
import type { Zone } from "../core/seams.ts";
import { formatTime } from "../core/time.ts";
import type { Found, Hold } from "../store/store.ts";
import type { Terminal } from "./io.ts";
import { bold, escapeControls, relative, table } from "./output.ts";
import { nested } from "./rows.ts";

interface View {
  readonly now: number;
  readonly zone: Zone;
  readonly terminal: Terminal;
}

const INDENT = "  ";

export function portrait({ row, hold, history, audit }: Found, view: View): string {
  const heading = `${row.seq}  ${row.id}  ${row.status}`;
  const blocks = [
    [view.terminal.color ? bold(heading) : heading, ...fields(row, hold, view)].join("\n"),
    section("Envelope", pretty(row.payload), view),
    section("Attempts", attempts(history, view), view),
    section("History", historyTable(history, view), view),
    section("Audit", auditTable(audit, view), view),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function fields(row: Found["row"], hold: Hold | null, view: View): readonly string[] {
  const at = (epochS: number): string => `${formatTime(epochS, view.zone)}, ${relative(epochS, view.now)}`;
  const optional = {
    "dedup key": row.dedup_key,
    "ordering key": row.ordering_key,
    session: row.session_id,
    "schedule run": row.schedule_run_id,
    tenant: row.tenant_id,
    user: row.user_id,
    roles: row.user_roles,
    correlation: row.correlation_id,
    "ack token": row.ack_token,
    holder: row.holder,
  };
  const lines: readonly (readonly [string, string | null])[] = [
    ["kind", row.kind],
    ["to", row.deliver_to],
    ["attempt", `${row.attempt} of ${row.max_attempts}`],
    ["next", nextMove({ ...row, last_error: null }, view.now, row)],
    ["held", hold === null ? null : heldText(hold, at)],
    ["last error", row.last_error],
    ["created", at(row.created_at)],
    ["last move", at(row.updated_at)],
    [
      row.status === "delivering" ? "lease ends" : "due",
      row.status === "pending" || row.status === "delivering" ? at(row.next_attempt_at) : null,
    ],
    ["expires", row.expires_at === null ? null : at(row.expires_at)],
    ...Object.entries(optional),
  ];
  return lines.flatMap(([label, value]) => (value === null ? [] : [`${INDENT}${label.padEnd(13)}${escapeControls(value)}`]));
}

function heldText({ created_at, ends_at, actor, note }: Hold, at: (epochS: number) => string): string {
  const end = ends_at === null ? "" : `, until ${at(ends_at)}`;
  return `since ${at(created_at)}${end}, by ${actor}${note === null ? "" : `: ${note}`}`;
}

/** Indented by parsing and printing; `--json` has the text to the letter. */
function pretty(payload: string): readonly string[] {
  const value = nested(payload);
  return (typeof value === "string" ? payload : JSON.stringify(value, null, 2)).split("\n").map(escapeControls);
}

/** What the history keeps of a command that ran. */
interface Seen {
  readonly attempt?: unknown;
  readonly exit?: unknown;
  readonly signal?: unknown;
  readonly duration_ms?: unknown;
  readonly head?: unknown;
  readonly tail?: unknown;
}

function attempts(history: readonly Transition[], view: View): readonly string[] {
  return history.flatMap((transition) => {
    const seen = nested(transition.metadata) as Seen | null;
    if (typeof seen !== "object" || seen === null || typeof seen.duration_ms !== "number") return vanished(transition, view);
    const end = typeof seen.signal === "string" ? `signal ${seen.signal}` : typeof seen.exit === "number" ? `exit ${seen.exit}` : "over";
    return [
      escapeControls(
        `attempt ${String(seen.attempt)}: ${end} after ${shortDuration(seen.duration_ms)}, ${formatTime(transition.created_at, view.zone)}`,
      ),
      ...outputLines(seen.head),
      ...(typeof seen.tail === "string" && seen.tail !== "" ? [`${INDENT}| …`, ...outputLines(seen.tail)] : []),
    ];
  });
}

/** An attempt of which nobody heard any more shows in the move that found its lease over. */
function vanished({ previous_status, reason_summary, reason_code, metadata, created_at }: Transition, { zone }: View): readonly string[] {
  if (previous_status !== "delivering") return [];
  const told = /\bthe runner of attempt (\d+)( of \d+)? vanished$/.exec(reason_summary)?.[1];
  // What an operator cancelled had no runner any more either.
  const cancelled = shortReason(reason_code) === "cancelled" ? (nested(metadata) as Seen | null)?.attempt : undefined;
  const attempt = told ?? (typeof cancelled === "number" ? cancelled : undefined);
  return attempt === undefined ? [] : [`attempt ${attempt}: its runner vanished, ${formatTime(created_at, zone)}`];
}

function outputLines(output: unknown): readonly string[] {
  if (typeof output !== "string" || output === "") return [];
  const lines = output.replace(/\r?\n$/, "").split(/\r?\n/);
  return lines.map((line) => `${INDENT}| ${escapeControls(line)}`);
}

function historyTable(history: readonly Transition[], view: View): readonly string[] {
  const columns = [
    { title: "TIME" },
    { title: "STATUS", elastic: true },
    { title: "REASON", elastic: true },
    { title: "BY", elastic: true },
    { title: "SUMMARY", elastic: true },
  ] as const;
  const rows = history.map((each) => [
    formatTime(each.created_at, view.zone),
    each.status,
    shortReason(each.reason_code),
    each.source,
    each.reason_summary,
  ]);
  return indented(columns, rows, view);
}

function auditTable(audit: readonly AdminEvent[], view: View): readonly string[] {
  const columns = [
    { title: "TIME" },
    { title: "ACTION", elastic: true },
    { title: "ACTOR", elastic: true },
    { title: "DETAILS", elastic: true },
  ] as const;
  return indented(
    columns,
    audit.map((each) => [formatTime(each.created_at, view.zone), each.action, each.actor, each.details]),
    view,
  );
}

function indented(columns: Parameters<typeof table>[0], rows: readonly (readonly string[])[], { terminal }: View): readonly string[] {
  if (rows.length === 0) return [];
  const width = terminal.columns === null ? null : terminal.columns - INDENT.length;
  return table(columns, rows, { columns: width, color: terminal.color }).trimEnd().split("\n");
}

function section(title: string, lines: readonly string[], { terminal }: View): string {
  if (lines.length === 0) return "";
  return [terminal.color ? bold(title) : title, ...lines.map((line) => INDENT + line)].join("\n");
}
