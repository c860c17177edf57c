/** A story as it is printed: one line a deed, with the moment at which it is done. */
import type { Act, Deed, Letter, Scope, Story } from "./words.ts";

export function aloud({ runners, steps, pauseMs, ending }: Story): string {
  let atMs = 0;
  const lines = steps.map(({ afterMs, deed }) => {
    atMs += afterMs;
    return `${(atMs / 1_000).toFixed(3).padStart(9)} s  ${line(deed)}`;
  });
  return [
    `    first  ${runners} runners`,
    ...lines,
    `${String(pauseMs / 1_000).padStart(3)} s later  all faults stop; ${ending === "once" ? "`run --once`, again and again" : "one more runner"} until all is at its end`,
  ].join("\n");
}

function line(deed: Deed): string {
  switch (deed.do) {
    case "enqueue":
      return `enqueue ${letter(deed.letter)}${deed.mishap === "none" ? "" : `; its first transaction: ${deed.mishap}`}`;
    case "run":
      return deed.mode === "once" ? "run --once begins" : "a runner begins";
    case "now":
      return `enqueue --now ${letter(deed.letter)}`;
    case "deliver":
      return `a program enters ${letter(deed.letter)}, claimed for ${deed.leaseS} s, ${deed.rollback ? "and rolls back" : "and delivers it"}`;
    case "kill":
      return `process ${deed.who} is killed`;
    case "crash":
      return `process ${deed.who} is killed at its await number ${deed.crossings} from here`;
    case "freeze":
      return `process ${deed.who} stands still for ${deed.ms} ms`;
    case "stop":
      return `process ${deed.who} is told to stop${deed.twice ? ", and 500 ms later to stop at once" : ""}`;
    case "trouble":
      return `process ${deed.who}, its next transactions: ${deed.mishaps.join(", ")}`;
    case "clock":
      return `the wall clock is set ${deed.seconds < 0 ? "back" : "forward"} by ${Math.abs(deed.seconds)} s`;
    case "ack":
      return `the consumer acknowledges row ${deed.row} with ${deed.right ? "its" : "a wrong"} token`;
    case "retry":
      return `an operator retries row ${deed.row}${deed.expiresS === null ? "" : `, to expire in ${deed.expiresS} s`}`;
    case "cancel":
      return `an operator cancels row ${deed.row}`;
    case "purge":
      return `an operator purges row ${deed.row}${deed.force ? ", with force" : ""}`;
    case "change many":
      return `an operator does this to all${deed.to === null ? "" : ` to ${deed.to}`}: ${deed.verb}`;
    case "handle":
      return `a consumer begins row ${deed.row} in its inbox, and ${deed.ends}s it ${deed.ms} ms later`;
    case "hold":
      return `an operator holds ${scope(deed.scope)}${deed.forS === null ? "" : ` for ${deed.forS} s`}`;
    case "resume":
      return `an operator resumes ${deed.scope === "all" ? "all holds" : scope(deed.scope)}`;
    case "break":
      return `the command of kind ${deed.kind} cannot be found for ${deed.ms} ms`;
    default:
      return deed satisfies never;
  }
}

function letter({ kind, to, max, key, dedup, ack, delayS, expiresS, acts }: Letter): string {
  const parts = [
    `a ${kind} to ${to}, ${max} attempts`,
    key === undefined ? "" : `ordering key ${key}`,
    dedup === undefined ? "" : `dedup key ${dedup}`,
    ack === true ? "with acknowledgement" : "",
    delayS === undefined ? "" : `in ${delayS} s`,
    expiresS === undefined ? "" : `expiring in ${expiresS} s`,
    acts === undefined ? "" : `its commands: ${acts.map(act).join(", ")}`,
  ];
  return `(${parts.filter((part) => part !== "").join("; ")})`;
}

function act({ outcome, ms, retryAfterMs, acks }: Act): string {
  return `${outcome} after ${ms} ms${retryAfterMs === undefined ? "" : ` (retry-after ${retryAfterMs} ms)`}${acks === true ? " (acknowledges itself)" : ""}`;
}

function scope({ to, kind, key }: Scope): string {
  const named = [to === undefined ? "" : `to ${to}`, kind === undefined ? "" : `kind ${kind}`, key === undefined ? "" : `key ${key}`];
  return named.filter((part) => part !== "").join(", ") || "everything";
}
