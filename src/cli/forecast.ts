/** `outbox run --dry-run`: what `run --once` would send or end now, and what keeps the rest. Page by page, and only reading. */
import { OutboxError } from "../core/errors.ts";
import { type Fate, outlook } from "../dispatcher/forecast.ts";
import { hostHolders } from "../host.ts";
import { type Loaded, policyFor, type Settings } from "../settings/settings.ts";
import type { ForecastPage, Foreseen } from "../store/store.ts";
import { createSpawnTransport } from "../transport/spawn.ts";
import { exitCode, OK } from "./exit.ts";
import type { Io } from "./io.ts";
import { createLog } from "./log.ts";
import { type Column, escapeControls, jsonLine, table } from "./output.ts";
import type { Args } from "./parse.ts";
import { lookedAt, type NamedDatabase, sourcesOf, withStore, workplace } from "./place.ts";
import { planOf } from "./plan.ts";
import { lineFor } from "./telling.ts";

const SOURCE: Column = { title: "SOURCE" };
const KEY: Column = { title: "KEY", elastic: true };
const COLUMNS: readonly Column[] = [
  SOURCE,
  { title: "SEQ", right: true },
  { title: "KIND", elastic: true },
  { title: "TO", elastic: true },
  KEY,
  { title: "WOULD", elastic: true },
];

/** Due rows that would be left where they are, over all sources. */
type Tally = Record<Exclude<keyof ForecastPage["kept"], "fault">, number> & { fault: number };

interface Told {
  readonly row: Foreseen;
  readonly fate: Fate;
  readonly source: string;
  /** The program that would be run. */
  readonly command: string | null;
}

/** @returns the exit code that `run --once` would begin with: of a source that cannot be opened, or of a fault */
export async function foretell(args: Args, io: Io, loaded: Loaded): Promise<number> {
  const { settings } = loaded;
  const holders = await hostHolders();
  const plan = planOf(loaded, { io, transport: createSpawnTransport(io.clock), cwd: workplace(io) });
  const { wish, faults, fateOf } = outlook(plan, (holder) => holders.isAlive(holder));
  const log = createLog(
    { level: "warn", format: "plain" },
    () => io.clock.now(),
    (line) => io.err(line),
  );
  const databases = sourcesOf(args, io, settings);
  const print = args.on("json") ? printJson : printer(databases.length > 1);
  const kept: Tally = { held: 0, behind: 0, circuit: 0, running: 0, fault: 0 };
  let listed = 0;
  let trouble: OutboxError | null = null;
  const look = async (database: NamedDatabase): Promise<void> =>
    withStore(lookedAt(database, io, args.on("allow-network-fs")), io, async (store) => {
      const forecast = store.forecast(wish);
      for (let page = await forecast.next(); page !== null; page = await forecast.next()) {
        add(kept, page.kept);
        const told = page.rows.map((row) => ({ row, fate: fateOf(row), source: database.name, command: commandOf(settings, row.kind) }));
        if (told.length > 0) print(told, io);
        listed += told.length;
      }
    });
  for (const { route, error } of faults) log(lineFor({ kind: "fault", route, error }));
  for (const database of databases) {
    try {
      await look(database);
    } catch (error) {
      if (!(error instanceof OutboxError)) throw error;
      trouble ??= error;
      log(lineFor({ kind: "trouble", source: database.name, error }));
    }
  }
  if (!args.on("json")) for (const line of remarks(listed, kept, trouble)) io.err(`outbox: ${line}`);
  if (trouble !== null) return exitCode(trouble.kind);
  return faults.length > 0 ? exitCode("settings") : OK;
}

function add(kept: Tally, page: ForecastPage["kept"]): void {
  for (const why of ["held", "behind", "circuit", "running"] as const) kept[why] += page[why];
  for (const number of page.fault.values()) kept.fault += number;
}

function commandOf(settings: Settings, kind: string): string | null {
  return policyFor(settings, kind)?.notifyTemplate?.[0] ?? null;
}

function printJson(told: readonly Told[], io: Io): void {
  const line = ({ row, fate, source, command }: Told): string => {
    const { seq, id, kind, deliver_to, ordering_key, status, attempt, max_attempts, next_attempt_at, expires_at } = row;
    const columns = { seq, id, kind, deliver_to, ordering_key, status, attempt, max_attempts, next_attempt_at, expires_at };
    const { action, reason, error } = fate;
    return jsonLine({ ...columns, source, action, reason, command: action === "send" ? command : null, error });
  };
  io.out(told.map(line).join(""));
}

/** Each page is a table of its own width under one header: all of them would have to be kept for one width. */
function printer(several: boolean): (told: readonly Told[], io: Io) => void {
  let keyed: boolean | null = null;
  return (told, io) => {
    const first = keyed === null;
    keyed ??= told.some(({ row }) => row.ordering_key !== null);
    const shown = COLUMNS.map((column) => (column === SOURCE ? several : column !== KEY || keyed === true));
    const cells = told.map(({ row, fate, source, command }) => [
      source,
      String(row.seq),
      row.kind,
      row.deliver_to,
      row.ordering_key ?? "",
      inWords(row, fate, command),
    ]);
    const picked = <T>(row: readonly T[]): readonly T[] => row.filter((_, at) => shown[at] === true);
    const text = table(picked(COLUMNS), cells.map(picked), io.terminal());
    io.out(first ? text : text.slice(text.indexOf("\n") + 1));
  };
}

function inWords(row: Foreseen, { action, reason, error }: Fate, command: string | null): string {
  const attempt = `attempt ${row.attempt + 1}/${row.max_attempts}`;
  switch (action) {
    case "send":
      return `send ${attempt} with ${command ?? "nothing"}`;
    case "fail":
      return `fail ${attempt}: ${error ?? "its command cannot start"}`;
    case "expire":
      return "expire";
    case "die":
      return error === null ? `die: ${reason}` : `die: ${reason}: ${error}`;
    default:
      return action satisfies never;
  }
}

/** Why nothing is listed, and what is due and would be left. */
function remarks(listed: number, kept: Tally, trouble: OutboxError | null): readonly string[] {
  const reasons = [
    [kept.fault, "by a fault"],
    [kept.held, "held"],
    [kept.circuit, "by an open circuit"],
    [kept.behind, "behind another of the same key"],
    [kept.running, "running"],
  ] as const;
  const parts = reasons.filter(([number]) => number > 0).map(([number, why]) => `${number} ${why}`);
  const nothing = listed > 0 || trouble !== null ? [] : [parts.length === 0 ? "nothing is due" : "nothing would be sent or ended"];
  return [...nothing, ...(parts.length === 0 ? [] : [`left as they are: ${parts.join(", ")}`])].map(escapeControls);
}
