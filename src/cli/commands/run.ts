/** `outbox run`: wires settings, store, transport and host into a runner. `--once` drains and ends, for cron. */
import { OutboxError } from "../../core/errors.ts";
import type { Counters, Tell } from "../../dispatcher/report.ts";
import { runForever, runOnce } from "../../dispatcher/run.ts";
import { watcher } from "../../dispatcher/wake.ts";
import { hostHolders } from "../../host.ts";
import { namedFile, userFile } from "../../settings/locate.ts";
import type { Loaded } from "../../settings/settings.ts";
import { openStore } from "../../store/store.ts";
import { createSpawnTransport } from "../../transport/spawn.ts";
import { exitCode, INTERRUPTED, OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog } from "../log.ts";
import { count, jsonLine } from "../output.ts";
import type { Args } from "../parse.ts";
import { carefulSettings, choiceOf, made, sourcesOf, workplace } from "../place.ts";
import { planOf } from "../plan.ts";
import { rereading } from "../rereading.ts";
import { type Line, lineFor } from "../telling.ts";

/** `run` never blocks its thread longer on a lock: timers and signals wait behind it (DESIGN section 4). */
const BUSY_MS = 100;

export async function run(args: Args, io: Io): Promise<number> {
  Bun.unsafe.setJITPolicy(1); // the build starts every command reluctant to compile: only this one lives long enough for it
  const once = args.on("once");
  const dryRun = args.on("dry-run");
  if (args.on("json") && !once && !dryRun)
    throw new OutboxError("usage", "--json prints the counts of --once", "add --once, or leave --json out");
  const loaded = await carefulSettings(args, io);
  if (dryRun) return (await import("../forecast.ts")).foretell(args, io, loaded);
  const { stop, now, onHangup } = io.interrupts();
  const databases = sourcesOf(args, io, loaded.settings);
  const transport = createSpawnTransport(io.clock);
  const holders = await hostHolders();
  const planFrom = (from: Loaded) => planOf(from, { io, transport, cwd: workplace(io) });
  let plan = planFrom(loaded);
  let log = logFor(loaded, once, io);
  const say = (level: Line["level"], text: string): void => log({ level, text, fields: {} });
  const tell: Tell = (event) => log(lineFor(event));
  const settings = rereading(loaded, {
    load: () => carefulSettings(args, io),
    candidate: namedFile(choiceOf(args, io))?.path ?? userFile(io.env),
    complain: (text) => say("error", text),
  });
  onHangup(() => settings.again());

  const ran = await (once ? runOnce : runForever)({
    clock: io.clock,
    transport,
    sources: databases.map((database) => ({
      name: database.name,
      path: database.path,
      open: () => openStore({ ...made(database, io, args.on("allow-network-fs")), checkPlace: true, busyMs: BUSY_MS }, io),
    })),
    plan: () => {
      settings.current();
      return plan;
    },
    tell,
    watch: watcher,
    holder: holders.own,
    isAlive: (holder) => holders.isAlive(holder),
    stop,
    now,
    onWake: (wake) => {
      settings.onChange((fresh) => {
        const named = sourcesOf(args, io, fresh.settings).map(({ path }) => path);
        plan = planFrom(fresh);
        log = logFor(fresh, once, io);
        say("info", `settings read again${fresh.file === null ? "" : ` from ${fresh.file}`}`);
        if (named.join("\0") !== databases.map(({ path }) => path).join("\0"))
          say("warn", `the settings now name other databases (${named.join(", ")}); start run again to drain them`);
        wake();
      });
    },
  });
  if (args.on("json")) io.out(jsonLine(ran.counters));
  else if (once && io.terminal().stderr) io.err(summary(ran.counters));
  if (now.aborted) return now.reason === "SIGINT" ? INTERRUPTED.SIGINT : INTERRUPTED.SIGTERM;
  return ran.trouble === null ? OK : exitCode(ran.trouble.kind);
}

function logFor({ settings }: Loaded, once: boolean, io: Io): (line: Line) => void {
  return createLog(
    once ? { level: "warn", format: "plain" } : settings.log,
    () => io.clock.now(),
    (line) => io.err(line),
  );
}

function summary({ attempted, delivered, dead_letter, expired, retried }: Counters): string {
  if (attempted === 0) return "outbox: nothing was due";
  const parts = [`${delivered} delivered`, `${retried} to be retried`, `${dead_letter} dead`, `${expired} expired`];
  return `outbox: ${count(attempted, "message")} due: ${parts.filter((part) => !part.startsWith("0 ")).join(", ") || "none moved"}`;
}
