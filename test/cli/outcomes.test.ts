/** Every way in which a command can end, through the built program: one run of many commands, each of which says its group first. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Dispatch } from "../../src/core/dispatch.ts";
import { ID } from "./outbox.ts";
import { aliveIn, sh, Workstation } from "./running.ts";

setDefaultTimeout(30_000);

const TIMEOUT_MS = 700;

interface Case {
  readonly kind: string;
  readonly script: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Left out, nothing of its group may be left. */
  readonly leaves?: number;
}

const delivered = { status: "delivered", attempt: 1, last_error: null };
const failed = (error: string) => ({ status: "pending", reason_code: "dispatch.pending.retry_backoff", attempt: 1, last_error: error });
const timedOut = failed("timed out after 700ms");

const CASES: readonly Case[] = [
  { kind: "takes it", script: "exit 0", row: delivered },
  { kind: "complains", script: "echo '  no such seat ' >&2; exit 3", row: failed("no such seat") },
  { kind: "fails silently", script: "exit 3", row: failed("exit 3") },
  {
    kind: "fails for good",
    script: "exit 64",
    row: { status: "dead_letter", reason_code: "dispatch.dead_letter.rejected", attempt: 1, last_error: "exit 64" },
  },
  { kind: "dies by a signal", script: "kill -KILL $$", row: failed("signal SIGKILL") },
  { kind: "hangs", script: "exec sleep 60", row: timedOut },
  { kind: "forks and hangs", script: "(sleep 60 & sleep 60) & sleep 60", row: timedOut },
  { kind: "ignores SIGTERM", script: "trap '' TERM; while :; do sleep 0.1; done", row: timedOut },
  { kind: "answers SIGTERM with 0", script: "trap 'exit 0' TERM; while :; do sleep 0.05; done", row: timedOut },
  { kind: "floods both streams for ever", script: "yes & exec yes >&2", row: timedOut },
  { kind: "prints 20 MB", script: "head -c 20000000 /dev/zero | tr '\\0' x", row: delivered },
  { kind: "never reads its stdin", script: "sleep 0.2; exit 0", row: delivered, body: { text: "x".repeat(1_000_000) } },
  { kind: "closes its streams", script: "exec 0<&- 1>&- 2>&-; sleep 0.2; exit 0", row: delivered },
  { kind: "leaves a child that holds its pipes", script: "sleep 60 & exit 0", row: delivered, leaves: 1 },
  { kind: "knows when to be asked again", script: "echo busy; echo retry-after: 2h; exit 75", row: failed("exit 75") },
];

const place = new Workstation();
const rows = new Map<string, Dispatch>();
let tookMs = 0;

beforeAll(async () => {
  const route = ({ kind, script, row }: Case) =>
    [
      kind,
      {
        notify_template: sh(`echo $$; ${script}`),
        permanent_exit_codes: [64],
        timeout: row === timedOut ? `${TIMEOUT_MS}ms` : "10s", // whoever ends by itself may be slow
      },
    ] as const;
  place.settings({
    dispatch: {
      notify_template: ["/bin/true"],
      concurrency: CASES.length,
      routes: {
        ...Object.fromEntries(CASES.map(route)),
        "is too long for an argument": { notify_template: ["/bin/true", "--", "{payload}"] },
      },
    },
  });
  await place.enqueue(...CASES.map(({ kind, body }) => ({ kind, deliver_to: kind, ...(body === undefined ? {} : { body }) })));
  await place.run(
    ["enqueue", "--kind", "is too long for an argument", "--to", "seat-1", "--text-file", "-"],
    { stdout: ID, stderr: /longer/ },
    {
      stdin: "x".repeat(200_000),
    },
  );
  const startedAt = performance.now();
  await place.run(["run", "--once", "--json"], {
    stdout: '{"attempted":16,"delivered":5,"dead_letter":2,"expired":0,"retried":9}\n',
    // Only what needs a person, in one line each.
    stderr: /^(outbox: \d+ (fails for good|is too long for an argument) to .* died \(rejected\): .*; see outbox show \d+\n){2}$/,
  });
  tookMs = performance.now() - startedAt;
  for (const row of place.rows()) rows.set(row.kind, row);
});
afterAll(() => {
  const left = rows.get("leaves a child that holds its pipes");
  if (left !== undefined) process.kill(-groupOf(left), "SIGKILL");
  place[Symbol.dispose]();
});

function rowOf(kind: string): Dispatch {
  const found = rows.get(kind);
  if (found === undefined) throw new Error(`no row of kind ${kind}`);
  return found;
}

function metadataOf(row: Dispatch) {
  return JSON.parse(row.metadata) as { head: string; tail: string; duration_ms: number };
}

function groupOf(row: Dispatch): number {
  return Number.parseInt(metadataOf(row).head, 10);
}

test.each(CASES)("a command that $kind comes to what it must, in time, and leaves nobody behind", ({ kind, row: expected, leaves }) => {
  const row = rowOf(kind);
  expect(row).toMatchObject(expected);
  if (expected === timedOut) expect(metadataOf(row).duration_ms).toBeLessThan(TIMEOUT_MS + 3_000);
  expect(aliveIn(groupOf(row))).toHaveLength(leaves ?? 0);
});

test("commands run at the same time", () => {
  expect(tookMs).toBeLessThan(CASES.filter(({ row }) => row === timedOut).length * (TIMEOUT_MS + 1_000));
});

test("output is kept head and tail, within the bound", () => {
  for (const kind of ["floods both streams for ever", "prints 20 MB"]) {
    const { head, tail } = metadataOf(rowOf(kind));
    expect([head.length, tail.length]).toEqual([4_096, 4_096]);
  }
});

test("a wait that the command asks for is kept to", () => {
  const { next_attempt_at, updated_at } = rowOf("knows when to be asked again");
  expect(next_attempt_at - updated_at).toBeCloseTo(7_200, 1);
});

test("a payload that is too long for an argument dies at once, with the advice to use stdin", () => {
  expect(rowOf("is too long for an argument")).toMatchObject({ status: "dead_letter", attempt: 1 });
  expect(rowOf("is too long for an argument").last_error).toContain("leave {payload}, {body} and {text} out of the template");
});
