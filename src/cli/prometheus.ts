/**
 * Figures in Prometheus's text format (0.0.4), as its node_exporter reads them from a file. A value of a label may hold any text: what
 * moves a cursor or ends a line is made visible, so that no kind or destination breaks the page for the others.
 */
import { escapeControls } from "../core/visible.ts";
import type { Circuit, Figures } from "../store/store.ts";

/** The figures of one source. */
export interface Exposed {
  readonly source: string;
  readonly figures: Figures;
  /** Those that are listed; `figures.open_circuits` says how many there are. */
  readonly circuits: readonly Pick<Circuit, "deliver_to">[];
}

/** Labels and the value under them. */
type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

interface Metric {
  readonly name: string;
  readonly type: "gauge" | "counter" | "histogram";
  /** One sentence. */
  readonly help: string;
  /** Of one source; a suffix of the name before each, empty but for histograms. */
  readonly samples: (exposed: Exposed) => readonly (readonly [suffix: string, ...sample: Sample])[];
}

const METRICS: readonly Metric[] = [
  {
    name: "outbox_dispatches",
    type: "gauge",
    help: "Dispatches in the database, by status.",
    samples: ({ figures }) => Object.entries(figures.status).map(([status, count]) => ["", { status }, count]),
  },
  {
    name: "outbox_oldest_due_seconds",
    type: "gauge",
    help: "How long the dispatch that is due longest has been due; 0 when none is.",
    samples: ({ figures }) => [["", {}, figures.oldest_due_age]],
  },
  {
    name: "outbox_dispatch_lag_seconds",
    type: "histogram",
    help: "How long after it was due each attempt began.",
    samples: ({ figures: { lag } }) => [
      ...lag.buckets.map(({ le, count }) => ["_bucket", { le: String(le) }, count] as const),
      ["_bucket", { le: "+Inf" }, lag.count],
      ["_sum", {}, lag.sum],
      ["_count", {}, lag.count],
    ],
  },
  {
    name: "outbox_attempts_total",
    type: "counter",
    help: "Attempts that have ended, by kind and result; all kinds but a hundred stand under an empty kind.",
    samples: ({ figures }) => figures.attempts.map(({ kind, result, count }) => ["", { kind, result }, count]),
  },
  {
    name: "outbox_dead_letters_total",
    type: "counter",
    help: "Dispatches that have died, by kind and reason; all kinds but a hundred stand under an empty kind.",
    samples: ({ figures }) => figures.dead_letters_total.map(({ kind, reason, count }) => ["", { kind, reason }, count]),
  },
  {
    name: "outbox_circuit_open",
    type: "gauge",
    help: "1 for each destination whose circuit is open; of many those that have been open longest.",
    samples: ({ circuits }) => circuits.map(({ deliver_to: to }) => ["", { to }, 1]),
  },
  {
    name: "outbox_circuits_open",
    type: "gauge",
    help: "Destinations whose circuit is open.",
    samples: ({ figures }) => [["", {}, figures.open_circuits]],
  },
  {
    name: "outbox_holds",
    type: "gauge",
    help: "Holds of operators that have not ended.",
    samples: ({ figures }) => [["", {}, figures.holds]],
  },
];

/** The page for these sources. A metric stands once, with the samples of all of them below it; one without samples is left out. */
export function prometheus(sources: readonly Exposed[]): string {
  return METRICS.map((metric) => {
    const lines = new Map<string, number>();
    for (const exposed of sources)
      for (const [suffix, labels, value] of metric.samples(exposed)) {
        const name = `${metric.name}${suffix}{${labelled({ source: exposed.source, ...labels })}}`;
        // Two names that look alike once they are made visible are one: twice the same labels would break the page.
        const before = metric.type === "counter" ? (lines.get(name) ?? 0) : 0;
        lines.set(name, before + value);
      }
    if (lines.size === 0) return "";
    const samples = [...lines].map(([name, value]) => `${name} ${value}\n`).join("");
    return `# HELP ${metric.name} ${metric.help}\n# TYPE ${metric.name} ${metric.type}\n${samples}`;
  }).join("");
}

function labelled(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}="${value.split("\n").map(escaped).join("\\n")}"`)
    .join(",");
}

/** First what the format does not know is made visible, then what it knows is escaped. */
function escaped(value: string): string {
  return escapeControls(value).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}
