/** What a runner tells, in words. Whatever needs a person is a warning or an error; the rest is for the log of `run`. */
import type { Dispatch } from "../core/dispatch.ts";
import { shortDuration } from "../core/duration.ts";
import { firstLine } from "../core/first_line.ts";
import { type Move, shortReason } from "../core/lifecycle.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Event } from "../dispatcher/report.ts";
import { shortened } from "./output.ts";
import { NO_TEMPLATE } from "./plan.ts";

export interface Line {
  readonly level: "error" | "warn" | "info" | "debug";
  readonly text: string;
  /** For machines, in the JSON format. */
  readonly fields: Readonly<Record<string, string | number | null>>;
}

export function lineFor(event: Event): Line {
  switch (event.kind) {
    case "settled":
      return settled(event.dispatch, event.outcome, event.move, event.result);
    case "ended":
      return event.dispatch.status === "dead_letter"
        ? {
            level: "error",
            text: `${name(event.dispatch)} died: ${event.dispatch.reason_summary}; see outbox show ${event.dispatch.seq}`,
            fields: fields(event.dispatch),
          }
        : { level: "info", text: `${name(event.dispatch)} expired: ${event.dispatch.reason_summary}`, fields: fields(event.dispatch) };
    case "fault":
      return {
        level: "error",
        text: `${routeText(event.route)}${event.error}; nothing of it is sent, and no attempt is spent, until this is mended${wayOut(event.error)}`,
        fields: { route: event.route },
      };
    case "fault over":
      return { level: "warn", text: `${routeText(event.route)}messages can be sent again`, fields: { route: event.route } };
    case "trouble":
      return {
        level: "error",
        text: [shortened(event.error.message), event.error.hint].filter(Boolean).join("; "),
        fields: { source: event.source },
      };
    case "trouble over":
      return { level: "warn", text: `source ${event.source} answers again`, fields: { source: event.source } };
    case "circuit":
      return {
        level: "warn",
        text: `${shortened(event.deliverTo)} keeps failing: its circuit is open, nothing is sent to it for ${shortDuration(event.cooldownMs)} and no attempt is spent; then one dispatch tries`,
        fields: { source: event.source, deliver_to: event.deliverTo },
      };
    case "circuit over":
      return {
        level: "warn",
        text: `${shortened(event.deliverTo)} takes messages again: its circuit is closed`,
        fields: { source: event.source, deliver_to: event.deliverTo },
      };
    case "swept":
      return {
        level: "warn",
        text: `${event.deadLetters} dead ${event.deadLetters === 1 ? "letter" : "letters"} older than retention.dead_letter deleted`,
        fields: { source: event.source, count: event.deadLetters },
      };
    case "exhausted":
      return {
        level: "warn",
        text: `the machine is out of resources: ${event.error}; nothing is started for a while, and no attempt is spent`,
        fields: {},
      };
    case "exhausted over":
      return { level: "warn", text: "the machine has resources again: commands start", fields: {} };
    case "stuck":
      return {
        level: "error",
        text: `${name(event.dispatch)}: what attempt ${event.dispatch.attempt} came to (${saying(event.outcome)}) is refused and kept, to be tried again: ${event.error.message}`,
        fields: fields(event.dispatch),
      };
    case "unwritten":
      return {
        level: "error",
        text: `${name(event.dispatch)}: what attempt ${event.dispatch.attempt} came to (${saying(event.outcome)}) could not be written; it will be sent again`,
        fields: fields(event.dispatch),
      };
    default:
      return event satisfies never;
  }
}

function settled(dispatch: Dispatch, outcome: Outcome, move: Move, result: "applied" | "acked" | "lost"): Line {
  const all = {
    ...fields(dispatch),
    status: move.to,
    reason: move.reason,
    duration_ms: "report" in outcome ? (outcome.report?.durationMs ?? null) : null,
  };
  const line = (level: Line["level"], text: string): Line => ({ level, text: `${name(dispatch)} ${text}`, fields: all });
  if (result === "acked") return line("info", `acked while its command ran (${saying(outcome)})`);
  if (result === "lost")
    return line("info", `attempt ${dispatch.attempt} (${saying(outcome)}) no longer counts: its lease ended and the row moved on`);
  if (move.to === "dead_letter")
    return line(
      "error",
      `died (${shortReason(move.reason)}): ${firstLine(move.lastError ?? move.summary)}; see outbox show ${dispatch.seq}`,
    );
  if (outcome.kind === "unresolvable") return line("warn", `${outcome.error}; tried once more, then it dies`);
  if (outcome.kind === "ok")
    return line(
      "info",
      `${move.to === "delivered" ? "delivered" : "sent, waits for its acknowledgement"} (attempt ${dispatch.attempt}, ${shortDuration(outcome.report.durationMs)})`,
    );
  if (outcome.kind === "fault" && move.reason !== "dispatch.pending.retry_backoff") return line("debug", `put off: ${outcome.error}`);
  if (outcome.kind === "released") return line("info", `given back: ${outcome.error}`);
  return line("info", `${move.summary}: ${firstLine(move.lastError ?? "")}`);
}

function saying(outcome: Outcome): string {
  return outcome.kind === "ok" ? "the command took it" : firstLine(outcome.error);
}

function name(dispatch: Dispatch): string {
  return `${dispatch.seq} ${dispatch.kind} to ${dispatch.deliver_to}`;
}

function fields(dispatch: Dispatch): Line["fields"] {
  const { seq, id, kind, deliver_to, attempt, max_attempts, status, reason_code } = dispatch;
  return { seq, id, kind, deliver_to, attempt, max_attempts, status, reason: reason_code };
}

/** Who has no settings yet needs more than to be told that they are missing. */
function wayOut(error: string): string {
  return error === NO_TEMPLATE ? "; outbox init writes a settings file to start from" : "";
}

function routeText(route: string | null): string {
  return route === null ? "" : `route "${route}": `;
}
