-- Figures that cost nothing to read: counters, kept by trigger in the statement that makes the move. Bounded by construction: one
-- row of numbers, and a row for each kind and reason, where only the first hundred kinds stand under their own name. The order in which
-- SQLite runs triggers is undefined: none of these reads what another one writes. (A move always sets `status` or `attempt`.)

-- One row, so that a move rewrites it in its place.
CREATE TABLE main.dispatch_figures (
  one INTEGER PRIMARY KEY DEFAULT 1,
  -- how many dispatches there are now, by status
  pending INTEGER NOT NULL DEFAULT 0,
  delivering INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  acked INTEGER NOT NULL DEFAULT 0,
  dead_letter INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  -- circuits that are open now, those past their cooldown included
  open_circuits INTEGER NOT NULL DEFAULT 0,
  -- claims since the counters were made, how many seconds they were late together, and how many of them were at most so late
  claims INTEGER NOT NULL DEFAULT 0,
  lag_sum_s REAL NOT NULL DEFAULT 0,
  lag_100ms INTEGER NOT NULL DEFAULT 0,
  lag_500ms INTEGER NOT NULL DEFAULT 0,
  lag_1s INTEGER NOT NULL DEFAULT 0,
  lag_5s INTEGER NOT NULL DEFAULT 0,
  lag_15s INTEGER NOT NULL DEFAULT 0,
  lag_1m INTEGER NOT NULL DEFAULT 0,
  lag_5m INTEGER NOT NULL DEFAULT 0,
  lag_15m INTEGER NOT NULL DEFAULT 0,
  lag_1h INTEGER NOT NULL DEFAULT 0,
  lag_6h INTEGER NOT NULL DEFAULT 0,
  lag_1d INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT there_is_one_row CHECK (one = 1)
) STRICT;

CREATE TABLE main.dispatch_counters (
  kind TEXT NOT NULL,                                  -- '' for all kinds past the first hundred, and where the counter asks for none
  name TEXT NOT NULL,
  reason TEXT NOT NULL,                                -- a reason code; of attempts also 'lost'
  n INTEGER NOT NULL,
  PRIMARY KEY (kind, name, reason),
  CONSTRAINT name_is_known CHECK (name IN (
    'attempts',                                        -- how many have ended: never falls
    'dead_letters',                                    -- how many have died: never falls
    'dead'))                                           -- how many dead letters there are now, of all kinds
) STRICT, WITHOUT ROWID;

-- The kinds that are counted under their own name.
CREATE TABLE main.dispatch_kinds (kind TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

-- A counter is new, which is rare: of a kind for which there is no room it becomes part of the counter of all others.
CREATE TRIGGER main.dispatch_counts_kind AFTER INSERT ON dispatch_counters WHEN NEW.kind <> '' BEGIN
  INSERT INTO dispatch_kinds (kind) SELECT NEW.kind WHERE (SELECT count(*) FROM dispatch_kinds) < 100 ON CONFLICT (kind) DO NOTHING;
  INSERT INTO dispatch_counters (kind, name, reason, n)
  SELECT '', NEW.name, NEW.reason, NEW.n WHERE NOT EXISTS (SELECT 1 FROM dispatch_kinds WHERE kind = NEW.kind)
  ON CONFLICT (kind, name, reason) DO UPDATE SET n = n + excluded.n;
  DELETE FROM dispatch_counters
  WHERE kind = NEW.kind AND name = NEW.name AND reason = NEW.reason AND NOT EXISTS (SELECT 1 FROM dispatch_kinds WHERE kind = NEW.kind);
END;

-- When the circuit opened, which may be many cooldowns ago.
ALTER TABLE main.dispatch_destinations ADD COLUMN opened_at REAL;
CREATE INDEX main.dispatch_opened ON dispatch_destinations (opened_at, deliver_to) WHERE open_until IS NOT NULL;

CREATE TRIGGER main.dispatch_counts_enter AFTER INSERT ON dispatch_outbox BEGIN
  UPDATE dispatch_figures SET pending = pending + 1 WHERE one = 1;
END;

-- A claim: how long after its due time, or after the end of the lease that it takes over, it was made.
CREATE TRIGGER main.dispatch_counts_claim AFTER UPDATE OF status, attempt ON dispatch_outbox WHEN NEW.status = 'delivering' BEGIN
  UPDATE dispatch_figures SET pending = pending - (OLD.status = 'pending'), delivering = delivering + (OLD.status <> 'delivering'),
    claims = claims + 1, lag_sum_s = lag_sum_s + max(0, NEW.updated_at - OLD.next_attempt_at),
    lag_100ms = lag_100ms + (NEW.updated_at - OLD.next_attempt_at <= 0.1),
    lag_500ms = lag_500ms + (NEW.updated_at - OLD.next_attempt_at <= 0.5), lag_1s = lag_1s + (NEW.updated_at - OLD.next_attempt_at <= 1),
    lag_5s = lag_5s + (NEW.updated_at - OLD.next_attempt_at <= 5), lag_15s = lag_15s + (NEW.updated_at - OLD.next_attempt_at <= 15),
    lag_1m = lag_1m + (NEW.updated_at - OLD.next_attempt_at <= 60), lag_5m = lag_5m + (NEW.updated_at - OLD.next_attempt_at <= 300),
    lag_15m = lag_15m + (NEW.updated_at - OLD.next_attempt_at <= 900), lag_1h = lag_1h + (NEW.updated_at - OLD.next_attempt_at <= 3600),
    lag_6h = lag_6h + (NEW.updated_at - OLD.next_attempt_at <= 21600), lag_1d = lag_1d + (NEW.updated_at - OLD.next_attempt_at <= 86400)
  WHERE one = 1;
END;

-- Every other move changes the status.
CREATE TRIGGER main.dispatch_counts_move AFTER UPDATE OF status, attempt ON dispatch_outbox WHEN NEW.status <> 'delivering' BEGIN
  UPDATE dispatch_figures SET pending = pending + (NEW.status = 'pending') - (OLD.status = 'pending'),
    delivering = delivering - (OLD.status = 'delivering'), delivered = delivered + (NEW.status = 'delivered'),
    acked = acked + (NEW.status = 'acked'), dead_letter = dead_letter + (NEW.status = 'dead_letter') - (OLD.status = 'dead_letter'),
    expired = expired + (NEW.status = 'expired') - (OLD.status = 'expired')
  WHERE one = 1;
END;

-- An attempt ended. A claim that another one took over, and one that ended because its lease was over, had lost its runner: `lost`.
-- (On the last attempt it died of that; then another one than its runner wrote it down.)
CREATE TRIGGER main.dispatch_counts_end AFTER UPDATE OF status, attempt ON dispatch_outbox WHEN OLD.status = 'delivering' BEGIN
  INSERT INTO dispatch_counters (kind, name, reason, n)
  VALUES (NEW.kind, 'attempts', CASE
    WHEN NEW.status IN ('delivering', 'expired') OR (NEW.reason_code = 'dispatch.dead_letter.max_attempts' AND NEW.actor <> OLD.actor) THEN 'lost'
    ELSE NEW.reason_code END, 1)
  ON CONFLICT (kind, name, reason) DO UPDATE SET n = n + 1;
END;

-- It dies, or an operator puts it back. (Rare, so one trigger: SQLite enters each of them before it looks at its WHEN.)
CREATE TRIGGER main.dispatch_counts_dead AFTER UPDATE OF status, attempt ON dispatch_outbox WHEN 'dead_letter' IN (OLD.status, NEW.status) BEGIN
  UPDATE dispatch_counters SET n = n - 1 WHERE OLD.status = 'dead_letter' AND kind = '' AND name = 'dead' AND reason = OLD.reason_code;
  INSERT INTO dispatch_counters (kind, name, reason, n) SELECT NEW.kind, 'dead_letters', NEW.reason_code, 1 WHERE NEW.status = 'dead_letter'
  ON CONFLICT (kind, name, reason) DO UPDATE SET n = n + 1;
  INSERT INTO dispatch_counters (kind, name, reason, n) SELECT '', 'dead', NEW.reason_code, 1 WHERE NEW.status = 'dead_letter'
  ON CONFLICT (kind, name, reason) DO UPDATE SET n = n + 1;
END;

-- A row goes. Whoever has it claimed has lost it.
CREATE TRIGGER main.dispatch_counts_leave AFTER DELETE ON dispatch_outbox BEGIN
  UPDATE dispatch_figures SET pending = pending - (OLD.status = 'pending'), delivering = delivering - (OLD.status = 'delivering'),
    delivered = delivered - (OLD.status = 'delivered'), acked = acked - (OLD.status = 'acked'),
    dead_letter = dead_letter - (OLD.status = 'dead_letter'), expired = expired - (OLD.status = 'expired')
  WHERE one = 1;
END;
CREATE TRIGGER main.dispatch_counts_leave_undone AFTER DELETE ON dispatch_outbox WHEN OLD.status IN ('delivering', 'dead_letter') BEGIN
  UPDATE dispatch_counters SET n = n - 1 WHERE OLD.status = 'dead_letter' AND kind = '' AND name = 'dead' AND reason = OLD.reason_code;
  INSERT INTO dispatch_counters (kind, name, reason, n) SELECT OLD.kind, 'attempts', 'lost', 1 WHERE OLD.status = 'delivering'
  ON CONFLICT (kind, name, reason) DO UPDATE SET n = n + 1;
END;

-- A circuit opens, or closes. (Destinations enter with a closed one: a trigger for that would cost every move.)
CREATE TRIGGER main.dispatch_counts_circuit AFTER UPDATE OF open_until ON dispatch_destinations
WHEN (OLD.open_until IS NULL) <> (NEW.open_until IS NULL) BEGIN
  UPDATE dispatch_figures SET open_circuits = open_circuits + (NEW.open_until IS NOT NULL) - (OLD.open_until IS NOT NULL) WHERE one = 1;
  UPDATE dispatch_destinations SET opened_at = CASE WHEN NEW.open_until IS NOT NULL THEN coalesce(NEW.failed_at, NEW.open_until) END
  WHERE deliver_to = NEW.deliver_to;
END;
CREATE TRIGGER main.dispatch_counts_circuit_leaves AFTER DELETE ON dispatch_destinations WHEN OLD.open_until IS NOT NULL BEGIN
  UPDATE dispatch_figures SET open_circuits = open_circuits - 1 WHERE one = 1;
END;

-- What is there already: the rows, and what the history of those that are still there tells. The triggers above keep it from here on.
-- How late past claims were is not known.
UPDATE main.dispatch_destinations SET opened_at = coalesce(failed_at, open_until) WHERE open_until IS NOT NULL;
INSERT INTO main.dispatch_figures (pending, delivering, delivered, acked, dead_letter, expired, open_circuits)
SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'delivering'), count(*) FILTER (WHERE status = 'delivered'),
  count(*) FILTER (WHERE status = 'acked'), count(*) FILTER (WHERE status = 'dead_letter'), count(*) FILTER (WHERE status = 'expired'),
  (SELECT count(*) FROM main.dispatch_destinations WHERE open_until IS NOT NULL)
FROM (SELECT status FROM main.dispatch_outbox WHERE status IN ('pending', 'delivering')
  UNION ALL SELECT status FROM main.dispatch_outbox WHERE status NOT IN ('pending', 'delivering'));
INSERT INTO main.dispatch_counters (kind, name, reason, n)
SELECT '', 'dead', reason_code, count(*) FROM main.dispatch_outbox
WHERE status NOT IN ('pending', 'delivering') AND status = 'dead_letter' GROUP BY reason_code;
INSERT INTO main.dispatch_counters (kind, name, reason, n)
SELECT o.kind, 'attempts', CASE
    WHEN t.status IN ('delivering', 'expired') OR (t.reason_code = 'dispatch.dead_letter.max_attempts' AND t.actor <> (
      SELECT c.actor FROM main.status_transitions c WHERE c.entity_id = t.entity_id AND c.id < t.id ORDER BY c.id DESC LIMIT 1)) THEN 'lost'
    ELSE t.reason_code END AS result, count(*)
FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id
WHERE t.entity_type = 'dispatch' AND t.previous_status = 'delivering' GROUP BY o.kind, result ORDER BY min(t.id);
INSERT INTO main.dispatch_counters (kind, name, reason, n)
SELECT o.kind, 'dead_letters', t.reason_code, count(*)
FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id
WHERE t.entity_type = 'dispatch' AND t.status = 'dead_letter' GROUP BY o.kind, t.reason_code ORDER BY min(t.id);
