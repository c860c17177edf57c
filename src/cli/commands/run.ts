/** `outbox run`: wires settings, store, transport and host into a runner. `--once` drains and ends, for cron. */
import { homedir } from "node:os";
import { statSync } from "node:fs";
import { OutboxError } from "../../core/errors.ts";
import type { Plan } from "../../dispatcher/plan.ts";
import type { Counters } from "../../dispatcher/report.ts";
import { runForever, runOnce, type RunnerSeams } from "../../dispatcher/run.ts";
import { hostHolder } from "../../host.ts";
import type { Loaded } from "../../settings/settings.ts";
import { openStore } from "../../store/store.ts";
import { createSpawnTransport } from "../../transport/spawn.ts";
import { exitCode, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog } from "../log.ts";
import { count, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { carefulSettings, databaseOf, made } from "../place.ts";
import { planOf } from "../plan.ts";
import { type Line, lineFor } from "../telling.ts";

/** `run` never blocks its thread longer on a lock: timers and signals wait behind it (DESIGN section 4). */
const BUSY_MS = 100;

export async function run(args: Args, io: Io): Promise<number> {
  const loaded = await carefulSettings(args, io);
  const once = args.on("once");
  const { stop, now, onHangup } = io.interrupts();
  const log = createLog(once ? { level: "warn", format: "plain" } : loaded.settings.log, (line) => io.err(line));
  const database = databaseOf(args, io, loaded.settings);
  const terms = { ...made(database, io, args.on("allow-network-fs")), checkPlace: true, busyMs: BUSY_MS };
  const transport = createSpawnTransport(io.clock);
  const plans = rereading(
    loaded,
    () => carefulSettings(args, io),
    (fresh) => planOf(fresh, { io, transport, database: database.path, cwd: home(io) }),
    log,
  );
  const seams: RunnerSeams = {
    clock: io.clock,
    transport,
    open: () => openStore(terms, io),
    plan: plans.current,
    tell: (event) => log(lineFor(event)),
    holder: await hostHolder(),
    stop,
    now,
    onWake: (wake) =>
      onHangup(() => {
        plans.again();
        wake();
      }),
  };
  const ran = once ? await runOnce(seams) : await runForever(seams);
  if (args.on("json")) io.out(jsonLine(ran.counters));
  else if (once && io.terminal().stderr) io.err(summary(ran.counters));
  if (now.aborted) return now.reason === "SIGINT" ? 130 : 143;
  return ran.trouble === null ? OK : exitCode(ran.trouble.kind);
}

function summary({ attempted, delivered, dead_letter, expired, retried }: Counters): string {
  if (attempted === 0) return "outbox: nothing was due";
  const parts = [`${delivered} delivered`, `${retried} to be retried`, `${dead_letter} dead`, `${expired} expired`];
  return `outbox: ${count(attempted, "message")} due: ${parts.filter((part) => !part.startsWith("0 ")).join(", ") || "none moved"}`;
}

/** The plan in force. The file is looked at before every tick; a wrong new one is told once and the old one stays. */
function rereading(first: Loaded, load: () => Promise<Loaded>, make: (loaded: Loaded) => Plan, log: (line: Line) => void) {
  let plan = make(first);
  let file = first.file;
  let seen = signature(file);
  let reading = false;
  const read = async (): Promise<void> => {
    try {
      const fresh = await load();
      if (fresh.settings.database !== first.settings.database)
        log({
          level: "warn",
          text: `the settings now name another database (${fresh.settings.database}); start run again to use it`,
          fields: {},
        });
      plan = make(fresh);
      file = fresh.file;
      seen = signature(file);
      log({ level: "info", text: `settings read again${file === null ? "" : ` from ${file}`}`, fields: {} });
    } catch (error) {
      const text = error instanceof OutboxError ? error.message : String(error);
      log({ level: "error", text: `${text}; the settings from before stay in force`, fields: {} });
    } finally {
      reading = false;
    }
  };
  const again = (): void => {
    if (reading) return;
    reading = true;
    void read();
  };
  return {
    again,
    current: (): Plan => {
      const now = signature(file);
      if (now !== seen) {
        seen = now;
        again();
      }
      return plan;
    },
  };
}

/** Changes when the file is edited, replaced or removed. */
function signature(file: string | null): string {
  if (file === null) return "none";
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "missing" : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

/** Commands run in the user's home, else in `/`: never where somebody happened to start the runner. */
function home(io: Io): string {
  const named = io.env["HOME"];
  const path = named !== undefined && named.startsWith("/") ? named : homedir();
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : "/";
}
