/** Figures as a person reads them: one column a source, and a line for each circuit that is open. */
import { shortDuration } from "../core/duration.ts";
import { STATUSES } from "../core/lifecycle.ts";
import type { Circuit, Figures } from "../store/store.ts";
import { count, escapeControls, relative, shortened, table } from "./output.ts";

/** The figures of one source. */
export interface Counted {
  readonly source: string;
  readonly path: string;
  readonly figures: Figures;
  /** The longest open ones. */
  readonly circuits: readonly Circuit[];
}

/** Circuits that are worth a line each. */
const SHOWN = 10;

/**
 * One table, or where that is wider than the terminal one for each source.
 * @param now epoch seconds
 * @param columns of the terminal; null: none
 */
export function figuresTable(counted: readonly Counted[], now: number, columns: number | null): string {
  const isOne = counted.length === 1;
  const all = tableOf(counted);
  const fits = columns === null || all.every((line) => line.length <= columns);
  // Of one source alone its name is not worth a line.
  const lines = isOne ? tableOf(counted, false).slice(1) : fits ? all : counted.flatMap((each) => [...tableOf([each]), ""]);
  return [...lines, ...counted.flatMap((each) => circuitLines(each, isOne ? "" : `${each.source}: `, now))]
    .map((line) => `${line}\n`)
    .join("");
}

/** Its lines, the first with the names of the sources. */
function tableOf(counted: readonly Counted[], isNamed = true): readonly string[] {
  const row = (label: string, of: (figures: Figures) => string | number): readonly string[] => [
    label,
    ...counted.map(({ figures }) => String(of(figures))),
  ];
  const reasons = [...new Set(counted.flatMap(({ figures }) => Object.keys(figures.dead_letters)))].toSorted();
  const rows = [
    row("depth", ({ depth }) => depth),
    row("oldest due", ({ oldest_due_age: age }) => (age === 0 ? "-" : shortDuration(age * 1_000))),
    ...STATUSES.flatMap((status) => [
      row(status, (figures) => figures.status[status]),
      ...(status === "dead_letter" ? reasons.map((reason) => row(`  ${reason}`, (figures) => figures.dead_letters[reason] ?? 0)) : []),
    ]),
    row("half begin within", ({ lag }) => within(lag, 0.5)),
    row("95% begin within", ({ lag }) => within(lag, 0.95)),
    row("open circuits", ({ open_circuits }) => open_circuits),
    row("holds", ({ holds }) => holds),
  ];
  const columns = [{ title: "SOURCE" }, ...counted.map(({ source }) => ({ title: isNamed ? source : "", right: true as const }))];
  return table(columns, rows, { columns: null, color: false }).trimEnd().split("\n");
}

/**
 * A bound that this share of all attempts kept: how long after it was due each began.
 * @example within(lag, 0.95) === "5s"
 */
export function within({ count: all, buckets }: Figures["lag"], share: number): string {
  if (all === 0) return "-";
  const bound = buckets.find((bucket) => bucket.count >= share * all);
  return bound === undefined ? `over ${shortDuration((buckets.at(-1)?.le ?? 0) * 1_000)}` : shortDuration(bound.le * 1_000);
}

function circuitLines({ figures, circuits }: Counted, prefix: string, now: number): readonly string[] {
  const shown = circuits.slice(0, SHOWN).map(({ deliver_to, failures, opened_at, open_until }) => {
    const next = open_until > now ? `tries again ${relative(open_until, now)}` : "tries with one message at a time";
    const since = shortDuration(Math.max(0, now - opened_at) * 1_000);
    return escapeControls(
      `${prefix}circuit open for ${since}: ${shortened(deliver_to)} failed ${count(failures, "time")} in a row, ${next}`,
    );
  });
  const more = figures.open_circuits - shown.length;
  return more > 0 ? [...shown, `${prefix}${count(more, "more open circuit")}`] : shown;
}
