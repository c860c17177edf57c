/** `outbox stats`: how much waits, how long, what came of the rest and what is stopped; of all sources unless one is named. */
import { OutboxError } from "../../core/errors.ts";
import { exitCode, OK } from "../exit.ts";
import { type Counted, figuresTable } from "../figures.ts";
import { type Io, StdoutClosed } from "../io.ts";
import { limitsOf, passed } from "../limits.ts";
import { complaint, escapeControls, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { carefulSettings, existing, sourcesOf, withStore } from "../place.ts";
import { prometheus } from "../prometheus.ts";

/** Circuits that are listed: as many as a monitor should keep apart. */
const LISTED = 100;

export async function run(args: Args, io: Io): Promise<number> {
  const limits = limitsOf(args);
  const { settings } = await carefulSettings(args, io);
  const databases = sourcesOf(args, io, settings);
  const isWatching = limits !== null || args.on("prometheus");
  const counted: Counted[] = [];
  for (const database of databases) {
    try {
      const read = withStore(existing(database, io), io, async (store) => ({
        figures: await store.figures(),
        circuits: await store.circuits(LISTED),
      }));
      counted.push({ source: database.name, path: database.path, ...(await read) });
    } catch (error) {
      if (!(error instanceof OutboxError)) throw error;
      // Of one database alone there is nothing else to tell. Whoever watches it takes 1 for an answer about what is in it.
      if (databases.length === 1) throw isWatching && error.kind === "no" ? new OutboxError("io", error.message, error.hint) : error;
      io.err(complaint(new OutboxError(error.kind, `source ${database.name} is left out: ${error.message}`, error.hint)));
    }
  }
  const lines =
    limits === null ? [] : counted.flatMap(({ source, figures }) => passed(figures, limits).map((line) => `${source}: ${line}`));
  try {
    if (limits !== null) io.out(lines.map((line) => `${escapeControls(line)}\n`).join(""));
    else if (args.on("prometheus")) io.out(prometheus(counted));
    else if (args.on("json")) io.out(counted.map(asJson).join(""));
    else if (counted.length > 0) io.out(figuresTable(counted, io.clock.now(), io.terminal().columns));
  } catch (error) {
    if (!(error instanceof StdoutClosed)) throw error; // who reads no further still gets the answer that is in the code
  }
  if (counted.length < databases.length) return exitCode("io");
  return lines.length > 0 ? exitCode("no") : OK;
}

function asJson({ figures, circuits, source, path }: Counted): string {
  return jsonLine({ ...figures, circuits, source, path });
}
