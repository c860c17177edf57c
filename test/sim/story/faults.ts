/**
 * Faults that the simulation must find: each a small change of the production code, made in a copy. A test of the tests; where the
 * code has changed so that a text is not there any more, it says so, and the fault is written anew.
 */
export interface Fault {
  /** What the changed code does wrong. */
  readonly name: string;
  /** In the named file under src/ this text, which must stand there once, becomes that one. */
  readonly edits: readonly (readonly [file: string, text: string, becomes: string])[];
  /** Which story of the seed finds it. */
  readonly story: string;
}

/** The seed of all their stories. */
export const SEED = 1;

const CLAIM = "store/claim.ts";
const GUARDS = "store/guards.ts";
const OPERATOR = "store/operator.ts";
const SETTLE = "store/transitions.ts";
const TICK = "dispatcher/tick.ts";
const FIRST_SCHEMA = "store/migrations/0001_outbox.sql";
const TURNS = "store/migrations/0002_turns.sql";
const FIGURES = "store/migrations/0003_figures.sql";

export const FAULTS: readonly Fault[] = [
  {
    name: "an outcome is written whoever has the claim",
    edits: [
      [
        SETTLE,
        "metadata = $metadata\n     WHERE seq = $seq AND status = 'delivering' AND lock_token = $token`",
        "metadata = $metadata\n     WHERE seq = $seq AND status = 'delivering'`",
      ],
    ],
    story: "197",
  },
  {
    name: "an outcome is written by id alone, whatever the status",
    edits: [
      [
        SETTLE,
        "metadata = $metadata\n     WHERE seq = $seq AND status = 'delivering' AND lock_token = $token`",
        "metadata = $metadata\n     WHERE seq = $seq`",
      ],
    ],
    story: "1",
  },
  {
    name: "a lease is renewed whoever has the claim",
    edits: [
      [
        SETTLE,
        "SET next_attempt_at = $until WHERE seq = $seq AND status = 'delivering' AND lock_token = $token",
        "SET next_attempt_at = $until WHERE seq = $seq AND status = 'delivering'",
      ],
    ],
    story: "101",
  },
  {
    name: "a claim does not ask whether the lease before it is over",
    edits: [
      [GUARDS, "DUE = `o.next_attempt_at <= $due_by`;", "DUE = `(o.status = 'delivering' OR o.next_attempt_at <= $due_by)`;"],
      [
        FIRST_SCHEMA,
        "NEW.status IN ('delivering', 'expired') AND OLD.next_attempt_at",
        "NEW.status IN ('expired') AND OLD.next_attempt_at",
      ],
    ],
    story: "0",
  },
  {
    name: "an attempt counts when it is settled, not when it is claimed",
    edits: [
      [CLAIM, "attempt = attempt + 1, lock_token", "lock_token"],
      [SETTLE, "attempt = $attempt,", "attempt = $attempt + 1,"],
      [
        FIRST_SCHEMA,
        "SELECT RAISE(ABORT, 'dispatch: the attempt number does not follow from the move')\n  WHERE NEW.attempt <> CASE",
        "SELECT RAISE(ABORT, 'dispatch: the attempt number does not follow from the move')\n  WHERE 0 AND NEW.attempt <> CASE",
      ],
    ],
    story: "0",
  },
  {
    name: "an outcome's status and its due time are written in two transactions",
    edits: [
      [
        "store/store.ts",
        "exchange: (terms) => transact(() => exchange(db, terms, { clock, entropy })),",
        `exchange: async (terms) => {
      const exchanged = await transact(() => exchange(db, terms, { clock, entropy }));
      const waiting = exchanged.settled.flatMap(({ move, result }, at) => (move.to === "pending" && result === "applied" ? [{ seq: terms.settle[at].claim.seq, due: move.nextAttemptAt }] : []));
      if (waiting.length > 0) await transact(() => waiting.forEach((row) => db.query("UPDATE main.dispatch_outbox SET next_attempt_at = $due WHERE seq = $seq AND status = 'pending'").run(row)));
      return exchanged;
    },`,
      ],
      [
        SETTLE,
        "next_attempt_at = CASE WHEN $status = 'pending' AND expires_at < $next THEN expires_at ELSE $next END,",
        "next_attempt_at = $now + 0 * $next,",
      ],
    ],
    story: "0",
  },
  {
    name: "a claim that is not bound to a transaction",
    edits: [
      [
        "store/store.ts",
        "exchange: (terms) => transact(() => exchange(db, terms, { clock, entropy })),",
        "exchange: async (terms) => exchange(db, terms, { clock, entropy }),",
      ],
    ],
    story: "0",
  },
  {
    name: "rows whose runner vanished are claimed again for ever",
    edits: [
      [GUARDS, "LASTS = `o.attempt < o.max_attempts AND", "LASTS = `(o.attempt < o.max_attempts OR o.status = 'delivering') AND"],
      [CLAIM, "o.attempt >= o.max_attempts AND ${DUE}", "o.status = 'pending' AND o.attempt >= o.max_attempts AND ${DUE}"],
    ],
    story: "20",
  },
  {
    name: "the order of a key is not asked in the claim",
    edits: [
      [
        TURNS,
        "p.status IN ('pending', 'delivering') AND p.seq < o.seq\n     ORDER BY p.seq LIMIT 1) AS waits_for",
        "p.status IN ('pending', 'delivering') AND p.seq < o.seq AND p.attempt < 0\n     ORDER BY p.seq LIMIT 1) AS waits_for",
      ],
    ],
    story: "6",
  },
  {
    name: "a row that was brought back starts beside a younger one of its key",
    edits: [[GUARDS, "p.next_attempt_at > $now AND p.seq <> o.seq", "p.next_attempt_at > $now AND p.seq < o.seq"]],
    story: "27",
  },
  {
    name: "a destination's limit does not see the claims of its own batch",
    edits: [
      [
        GUARDS,
        "ROOM = `${LIVE}",
        "ROOM = `(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now AND f.updated_at < $now)",
      ],
    ],
    story: "0",
  },
  {
    name: "rows of dead runners fill their destination",
    edits: [
      [
        GUARDS,
        "ROOM = `${LIVE}",
        "ROOM = `(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now - 1e9)",
      ],
    ],
    story: "29",
  },
  {
    name: "an expiry is asked only where rows are ended",
    edits: [[GUARDS, " AND (o.expires_at IS NULL OR o.expires_at > $now)`;", "`;"]],
    story: "17",
  },
  {
    name: "an open circuit has a probe for each runner",
    edits: [
      [
        GUARDS,
        "ROOM = `${LIVE}",
        "ROOM = `(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND f.next_attempt_at > $now AND (d.open_until IS NULL OR f.holder = $holder))",
      ],
      [GUARDS, "return { per_destination: terms.perDestination,", "return { holder: terms.holder, per_destination: terms.perDestination,"],
    ],
    story: "9",
  },
  {
    name: "an open circuit lets everything through after its cooldown",
    edits: [
      [GUARDS, "$circuits = 0 THEN $per_destination ELSE 1 END`;", "$circuits = 0 THEN $per_destination ELSE $per_destination END`;"],
    ],
    story: "4",
  },
  {
    name: "a probe whose runner vanished is never given up",
    edits: [
      [
        GUARDS,
        "ROOM = `${LIVE}",
        "ROOM = `(SELECT count(*) FROM main.dispatch_outbox f INDEXED BY dispatch_flight WHERE f.status = 'delivering' AND f.deliver_to = d.deliver_to AND (d.open_until IS NOT NULL OR f.next_attempt_at > $now))",
      ],
    ],
    story: "29",
  },
  {
    name: "no circuit opens",
    edits: [
      [
        "store/gates.ts",
        "WHEN failures + 1 >= $limit OR open_until IS NOT NULL THEN $now + $cooldown END\n",
        "WHEN failures < 0 * $limit THEN $now + $cooldown END\n",
      ],
    ],
    story: "1",
  },
  {
    name: "leases are not renewed",
    edits: [[TICK, "const renew = leases.due();", "const renew = leases.due().slice(99);"]],
    story: "1",
  },
  {
    name: "a stale claim starts without asking whether it is still ours",
    edits: [[TICK, "const STALE_CLAIM_S = 1;", "const STALE_CLAIM_S = 1e9;"]],
    story: "259",
  },
  {
    name: "a success is lost where the consumer was faster",
    edits: [[SETTLE, `return status === "acked" ? "acked" : "lost";`, `return status === "none" ? "acked" : "lost";`]],
    story: "1",
  },
  {
    name: "a row is cancelled while its command runs",
    edits: [
      [OPERATOR, 'if (isLive(row, now)) return "live";', ""],
      [OPERATOR, "(status = 'delivering' AND next_attempt_at <= $now))", "status = 'delivering')"],
      [
        FIRST_SCHEMA,
        "NEW.status IN ('delivering', 'expired') AND OLD.next_attempt_at",
        "NEW.status IN ('delivering') AND OLD.next_attempt_at",
      ],
    ],
    story: "5",
  },
  {
    name: "a row is purged while its command runs, and nobody insisted",
    edits: [[OPERATOR, "return isLive(row, now) && force !== true", "return isLive(row, now) && force === null"]],
    story: "5",
  },
  {
    name: "a purge leaves no audit row",
    edits: [
      ["store/operator.ts", 'record(db, terms, "dispatch.purge", row, {', "void ({"],
      ["store/operator.ts", "    forced: terms.force === true,\n  });", "    forced: terms.force === true,\n  });"],
    ],
    story: "5",
  },
  {
    name: "a purge leaves the history",
    edits: [
      [
        "store/operator.ts",
        "DELETE FROM main.status_transitions WHERE entity_id = $id AND",
        "DELETE FROM main.status_transitions WHERE entity_id = $id AND id < 0 AND",
      ],
    ],
    story: "5",
  },
  {
    name: "a hold is not asked in the claim",
    edits: [
      [
        TURNS,
        "(SELECT h.id FROM dispatch_holds h\n     WHERE (h.deliver_to",
        "(SELECT h.id FROM dispatch_holds h\n     WHERE h.id < 0 AND (h.deliver_to",
      ],
    ],
    story: "4",
  },
  {
    name: "a hold of a kind holds nothing that comes later",
    edits: [
      [TURNS, "NEW.ready = 0 OR EXISTS (SELECT 1 FROM dispatch_holds) BEGIN", "NEW.ready = 0 BEGIN"],
      [GUARDS, "ITS_TURN = `(SELECT t.may_go FROM main.dispatch_turn t WHERE t.seq = o.seq)`;", "ITS_TURN = `o.ready`;"],
    ],
    story: "4",
  },
  {
    name: "a claim that is given back costs an attempt",
    edits: [
      ["core/lifecycle.ts", "    attempt: claim.attempt - 1,", "    attempt: claim.attempt,"],
      [
        FIRST_SCHEMA,
        "IN ('dispatch.pending.released', 'dispatch.pending.config_fault') THEN OLD.attempt - 1",
        "IN ('dispatch.pending.released', 'dispatch.pending.config_fault') THEN NEW.attempt",
      ],
    ],
    story: "19",
  },
  {
    name: "a fault of the configuration is a failed attempt",
    edits: [["core/lifecycle.ts", `return policy.onConfigError === "fail"`, `return policy.onConfigError !== null`]],
    story: "78",
  },
  {
    name: "outcomes that a lock kept from being written are dropped",
    edits: [
      [
        TICK,
        '    crew.finished.unshift(...batch);\n    return { result: "trouble", error: exchanged };',
        '    return { result: "trouble", error: exchanged };',
      ],
    ],
    story: "59",
  },
  {
    name: "a message that a lock kept from being settled is sent again by its own runner",
    edits: [
      [GUARDS, "NOT_IN_HAND = `($in_hand IS NULL OR", "NOT_IN_HAND = `($in_hand IS NULL OR $in_hand IS NOT NULL OR"],
      [GUARDS, "ABANDONED = `(o.status = 'pending' OR", "ABANDONED = `($alive IS NULL OR $alive IS NOT NULL OR o.status = 'pending' OR"],
    ],
    story: "1",
  },
  {
    name: "two that ask for one dedup key at once are both told that they were first",
    edits: [
      ["store/enqueue.ts", "const first = request.dedup_key === null ? null : byDedupKey(db, request.dedup_key);", "const first = null;"],
    ],
    story: "5",
  },
  {
    name: "the history trigger is not there",
    edits: [[FIRST_SCHEMA, "source, actor, metadata ON dispatch_outbox BEGIN", "source, actor, metadata ON dispatch_outbox WHEN 0 BEGIN"]],
    story: "0",
  },
  {
    name: "what is swept leaves no audit row",
    edits: [["store/retention.ts", "removed.length + inbox === 0 ? before.auditId", "removed.length + inbox < 1e9 ? before.auditId"]],
    story: "34",
  },
  {
    name: "a sweep does not ask how old a row is",
    edits: [["store/retention.ts", "removeOldest(db, status, terms.now - keptS)", "removeOldest(db, status, terms.now + keptS)"]],
    story: "1",
  },
  {
    name: "a counter is not kept when rows are deleted",
    edits: [[FIGURES, "delivered = delivered - (OLD.status = 'delivered'), acked", "delivered = delivered - 0, acked"]],
    story: "17",
  },
  {
    name: "a program's function runs although its claim was rolled back",
    edits: [
      [
        "library/deliver.ts",
        '  if (row === null || row.status !== "delivering" || row.lock_token !== claim.dispatch.lock_token) return null;\n  if (begun.has(claim) || !renewed(hold)) return null;',
        "  if (begun.has(claim)) return null;",
      ],
      ["library/deliver.ts", "  begun.add(claim);\n  return row;", "  begun.add(claim);\n  return row ?? claim.dispatch;"],
    ],
    story: "16",
  },
  {
    name: "a runner that is told to stop goes without writing what it knows",
    edits: [
      ["dispatcher/trouble.ts", "const LAST_SETTLE_MS = 5_000;", "const LAST_SETTLE_MS = 0;"],
      ["dispatcher/sources.ts", "isDone: () => hands.running() === 0 && unwritten().length === 0,", "isDone: () => hands.running() === 0,"],
    ],
    story: "21",
  },
  {
    name: "a consumer begins what another one works at",
    edits: [["store/inbox.ts", "if (!isAbandoned) return", 'if (!isAbandoned && known !== "alive") return']],
    story: "19",
  },
  {
    name: "a consumer begins what was done already",
    edits: [
      [
        "store/inbox.ts",
        'if (entry.done_at !== null) return { outcome: "duplicate", done_at: entry.done_at };',
        "if (entry.done_at !== null) return begun;",
      ],
    ],
    story: "121",
  },
  {
    name: "a change of many leaves no audit row",
    edits: [["store/changes.ts", "return moved && !dryRun ?", "return moved && dryRun ?"]],
    story: "17",
  },
  {
    name: "open circuits are not counted",
    edits: [[FIGURES, "open_circuits + (NEW.open_until IS NOT NULL)", "open_circuits + 0"]],
    story: "1",
  },
  {
    name: "what comes due while a pass goes on is left until the interval is over",
    edits: [["store/store.ts", "const after = Math.min(since ?? now, now);", "const after = now;"]],
    story: "235",
  },
  {
    name: "an idle runner does not know when something comes due",
    edits: [["dispatcher/sources.ts", "moment === null ? own", "true ? own"]],
    story: "13",
  },
  {
    name: "an idle runner does not hear that others committed",
    edits: [["dispatcher/run.ts", "if (await runner.news()) return;", "await runner.news();"]],
    story: "9",
  },
];
