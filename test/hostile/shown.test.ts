/** Stored text that was made to deceive whoever looks at it: nothing of it reaches a terminal or a JSON line raw. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import type { Workstation } from "../cli/running.ts";
import { entropy } from "../fixtures/world.ts";
import { checkRequest } from "../../src/core/request.ts";
import { hostClock } from "../../src/host.ts";
import { enqueue } from "../../src/store/enqueue.ts";
import { type Came, type Case, hostile, MESSAGES } from "./cases.ts";

/** Clears the screen, sets the title, reorders, ends lines; a byte order mark and a DEL. */
const EVIL = "\u001b[2J\u001b]0;pwned\u0007\u009b31m\r\noutbox: all is well\t\u202etxt.exe\u2066\u2028\ufeff\u007f";
const SEQ = String(MESSAGES + 1);

/** Enters a message whose every text is evil, which failed once with an evil error, and holds it for an evil reason. */
function evil(place: Workstation): void {
  using db = new Database(place.database, { strict: true });
  const now = hostClock.now();
  const texts = { kind: EVIL, deliver_to: EVIL, dedup_key: EVIL, ordering_key: EVIL, session_id: EVIL, emitter_role: EVIL };
  enqueue(db, checkRequest({ ...texts, ack_required: true, body: { text: EVIL, [EVIL]: EVIL } }), now, entropy);
  const run = (sql: string, ...values: readonly (string | number)[]): void => void db.query(sql).run(...values);
  run(
    "UPDATE dispatch_outbox SET status = 'delivering', attempt = 1, lock_token = ?, holder = ?, next_attempt_at = ?, reason_code = 'dispatch.delivering.attempt', updated_at = ? WHERE seq = ?",
    EVIL,
    EVIL,
    now,
    now,
    SEQ,
  );
  run(
    "UPDATE dispatch_outbox SET status = 'pending', lock_token = NULL, holder = NULL, next_attempt_at = ?, reason_code = 'dispatch.pending.retry_backoff', reason_summary = ?, last_error = ?, actor = ?, source = ?, metadata = ?, updated_at = ? WHERE seq = ?",
    now,
    EVIL,
    EVIL,
    EVIL,
    EVIL,
    JSON.stringify({ attempt: 1, exit: 1, head: EVIL, tail: EVIL, duration_ms: 1, signal: null }),
    now,
    SEQ,
  );
  run("INSERT INTO dispatch_holds (deliver_to, note, created_at, actor) VALUES (?, ?, ?, ?)", EVIL, EVIL, now, EVIL);
  run("UPDATE dispatch_destinations SET failures = 5, failed_at = ?, open_until = ? WHERE deliver_to = ?", now, now + 60, EVIL);
  run(
    "INSERT INTO admin_events (created_at, action, target_id, details, actor) SELECT ?, ?, id, ?, ? FROM dispatch_outbox WHERE seq = ?",
    now,
    EVIL,
    JSON.stringify({ [EVIL]: EVIL }),
    EVIL,
    SEQ,
  );
}

/** Reads every line as JSON and hands over the first. */
function json(look: (first: Readonly<Record<string, unknown>>) => void): (place: Workstation, came: Came) => void {
  return (_, { stdout }) => {
    const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
    look(lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)[0] ?? {});
  };
}

describe("a message whose every text is hostile", () => {
  const look = (name: string, args: readonly string[], more: Partial<Case> = {}): Case => ({ name, args, code: 0, before: evil, ...more });
  hostile([
    look("ls", ["ls"], { stdout: /\\x1b\[2J/ }),
    look("ls --json", ["ls", "--json"], {
      after: json((row) => expect(row).toMatchObject({ kind: EVIL, deliver_to: EVIL, dedup_key: EVIL })),
    }),
    look("show", ["show", SEQ], { stdout: /\\x1b\[2J/ }),
    look("show --json", ["show", SEQ, "--json"], { after: json((row) => expect(row).toMatchObject({ kind: EVIL, last_error: EVIL })) }),
    look("stats", ["stats"]),
    look("stats --json", ["stats", "--json"]),
    look("hold", ["hold"], { stdout: /\\x1b\[2J/ }),
    look("hold --json", ["hold", "--json"]),
    look("ack with a wrong token", ["ack", SEQ, EVIL], { code: 1, said: /^outbox: [^\n]+\n$/ }),
    look("retry", ["retry", SEQ], { code: 1, stdout: /^0 messages put back\n$/, said: /^outbox: [^\n]+\n$/ }),
    look("cancel --dry-run", ["cancel", "--dry-run", SEQ], { stdout: /would be cancelled/ }),
    look("run --once", ["run", "--once"], {
      changes: true,
      before: (place) => (
        evil(place),
        void place.settings({ dispatch: { routes: { [EVIL]: { notify_template: ["/nonexistent/\u001b[2J"] } } } })
      ),
      code: [0, 78],
      said: /^(outbox: [^\n]+\n)+$/,
    }),
    look("enqueue of another message with its key", ["enqueue", "--kind", "k", "--to", "d", "--dedup-key", EVIL], {
      stdout: /^[0-9a-f]{32}\n$/,
      said: /^outbox: dedup key "\\x1b\[2J/,
    }),
  ]);
});
