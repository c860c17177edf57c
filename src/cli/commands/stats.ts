/** `outbox stats`: how much waits, how long, what came of the rest and what is stopped; of all sources unless one is named. */
import { shortDuration } from "../../core/duration.ts";
import { OutboxError } from "../../core/errors.ts";
import { STATUSES } from "../../core/lifecycle.ts";
import type { Circuit, Figures } from "../../store/store.ts";
import { exitCode, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { complaint, count, escapeControls, jsonLine, relative, table } from "../output.ts";
import type { Args } from "../parse.ts";
import { carefulSettings, existing, type NamedDatabase, sourcesOf, withStore } from "../place.ts";

interface Counted {
  readonly database: NamedDatabase;
  readonly figures: Figures;
  readonly circuits: readonly Circuit[];
}

export async function run(args: Args, io: Io): Promise<number> {
  const { settings } = await carefulSettings(args, io);
  const databases = sourcesOf(args, io, settings);
  const counted: Counted[] = [];
  for (const database of databases) {
    try {
      const read = withStore(existing(database, io), io, async (store) => ({
        figures: await store.figures(),
        circuits: await store.circuits(),
      }));
      counted.push({ database, ...(await read) });
    } catch (error) {
      // Of one database alone there is nothing else to tell.
      if (!(error instanceof OutboxError) || databases.length === 1) throw error;
      io.err(complaint(new OutboxError(error.kind, `source ${database.name} is left out: ${error.message}`, error.hint)));
    }
  }
  if (args.on("json")) io.out(counted.map(asJson).join(""));
  else if (counted.length > 0) io.out(asText(counted, io));
  return counted.length < databases.length ? exitCode("io") : OK;
}

function asJson({ database, figures, circuits }: Counted): string {
  return jsonLine({ ...figures, circuits, source: database.name, path: database.path });
}

/** One column a source; of one alone its name is not worth a line. */
function asText(counted: readonly Counted[], io: Io): string {
  const row = (label: string, of: (figures: Figures) => string): readonly string[] => [label, ...counted.map(({ figures }) => of(figures))];
  const rows = [
    row("depth", ({ depth }) => String(depth)),
    row("oldest due", ({ oldest_due_age: age }) => (age === 0 ? "-" : shortDuration(age * 1_000))),
    ...STATUSES.map((status) => row(status, (figures) => String(figures.status[status]))),
    row("open circuits", ({ open_circuits }) => String(open_circuits)),
    row("holds", ({ holds }) => String(holds)),
  ];
  const columns = [{ title: "SOURCE" }, ...counted.map(({ database }) => ({ title: database.name, right: true as const }))];
  const [header = "", ...lines] = table(columns, rows, { columns: null, color: false }).trimEnd().split("\n");
  return [...(counted.length === 1 ? lines : [header, ...lines]), ...counted.flatMap((each) => circuitLines(each, io))]
    .map((line) => `${line}\n`)
    .join("");
}

function circuitLines({ circuits }: Counted, io: Io): readonly string[] {
  const now = io.clock.now();
  return circuits.map(({ deliver_to, failures, open_until }) => {
    const next = open_until > now ? `tries again ${relative(open_until, now)}` : "tries with one message at a time";
    return escapeControls(`circuit open: ${deliver_to} failed ${count(failures, "time")} in a row, ${next}`);
  });
}
