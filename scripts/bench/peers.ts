/**
 * Other queues on SQLite, made as durable as outbox is (`synchronous = FULL`; by themselves both are not), each adding one job a
 * call. They are no packages of this project: peers/ pins them, and the benchmark installs them into dist/ when they can be had.
 */
import { Database } from "bun:sqlite";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { Place } from "./place.ts";

export interface Peer {
  readonly name: string;
  act(): Promise<number>;
  end(): void | Promise<void>;
}

const PINNED = join(import.meta.dir, "peers");
const HOME = join(import.meta.dir, "..", "..", "dist", "peers");

/** Those that are there, and the names of those that cannot be had. */
export async function peers(place: Place): Promise<{ readonly workers: readonly Peer[]; readonly missing: readonly string[] }> {
  const workers: Peer[] = [];
  const missing: string[] = [];
  for (const [name, start] of [
    ["plainjob 0.0.14, at FULL", plainjob],
    ["bunqueue 2.9.5, at FULL", bunqueue],
  ] as const) {
    try {
      install();
      workers.push({ name, ...(await start(place)) });
    } catch (error) {
      missing.push(`${name} (${error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)})`);
    }
  }
  return { workers, missing };
}

function install(): void {
  if (existsSync(join(HOME, "node_modules", "plainjob")) && existsSync(join(HOME, "node_modules", "bunqueue"))) return;
  cpSync(PINNED, HOME, { recursive: true });
  const done = Bun.spawnSync(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", HOME], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    timeout: 60_000,
  });
  if (done.exitCode !== 0) throw new Error(`npm ci failed: ${done.stderr.toString().trim().split("\n").at(-1)}`);
}

/** Loaded by a name that the bundler and the type checker do not follow: neither may depend on what is not installed. */
async function load(...path: readonly string[]): Promise<Record<string, unknown>> {
  return (await import(join(HOME, "node_modules", ...path))) as Record<string, unknown>;
}

async function plainjob(place: Place): Promise<Omit<Peer, "name">> {
  const { bun, defineQueue } = (await load("plainjob", "dist", "plainjob.js")) as {
    readonly bun: (db: Database) => unknown;
    readonly defineQueue: (terms: object) => { add(type: string, data: object): unknown; close(): void };
  };
  const db = new Database(place.file("plainjob.db"), { strict: true });
  const silent = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
  const queue = defineQueue({ connection: bun(db), logger: silent });
  db.run("PRAGMA synchronous = FULL"); // it sets NORMAL
  let n = 0;
  return { act: async () => (queue.add("k", { n: (n += 1) }), 1), end: () => queue.close() };
}

async function bunqueue(place: Place): Promise<Omit<Peer, "name">> {
  neverNormal();
  const { Queue, shutdownManager } = (await load("bunqueue", "dist", "client", "index.js")) as {
    readonly Queue: new (name: string, terms: object) => Bunqueue;
    readonly shutdownManager?: () => void;
  };
  const queue = new Queue("bench", { embedded: true, dataPath: place.file("bunqueue.db") });
  let n = 0;
  return {
    act: async () => (await queue.add("k", { n: (n += 1) }, { durable: true }), 1),
    end: async () => {
      await queue.close();
      shutdownManager?.();
    },
  };
}

interface Bunqueue {
  add(name: string, data: object, terms: object): Promise<unknown>;
  close(): Promise<void>;
}

/** It sets NORMAL in the script that makes its tables, on a handle that it keeps to itself. */
function neverNormal(): void {
  for (const name of ["run", "exec"] as const) {
    const real = Reflect.get(Database.prototype, name) as (this: Database, sql: string, ...rest: unknown[]) => unknown;
    Reflect.set(Database.prototype, name, function (this: Database, sql: string, ...rest: unknown[]) {
      return real.call(this, sql.replace("synchronous = NORMAL", "synchronous = FULL"), ...rest);
    });
  }
}
