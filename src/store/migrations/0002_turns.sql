-- Who may be claimed when. The rule is written once, as the view `dispatch_turn`; a row caches its answer in `ready`, one
-- small row a destination keeps when its first ready row is due and how many claims it has. The caches make claims cheap, never
-- safe: a claim asks the view again and counts live leases itself, so a wrong cache can delay a row, never break order, limit or
-- hold. The order in which SQLite runs triggers is undefined: every body recomputes from the state that it finds.

ALTER TABLE main.dispatch_outbox ADD COLUMN ready INTEGER NOT NULL DEFAULT 1 CONSTRAINT ready_is_0_or_1 CHECK (ready IN (0, 1));

-- An operator's stop. All that is given must match; nothing given holds everything.
CREATE TABLE main.dispatch_holds (
  id INTEGER PRIMARY KEY,
  deliver_to TEXT,
  kind TEXT,
  ordering_key TEXT,
  note TEXT,
  created_at REAL NOT NULL,
  ends_at REAL,                                        -- null: until somebody resumes
  actor TEXT NOT NULL,
  CONSTRAINT created_at_is_finite CHECK (abs(created_at) <= 1e15),
  CONSTRAINT ends_at_is_finite CHECK (abs(ends_at) <= 1e15)
) STRICT;

-- One row a destination: its circuit, when its first ready row is due, how many claims it has in flight. The last counts by the
-- clock of the move that it was counted at: leases that ran out since are taken off by the next claim.
CREATE TABLE main.dispatch_destinations (
  deliver_to TEXT NOT NULL PRIMARY KEY,
  due_at REAL,                                         -- null: no row is ready
  flight INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,                 -- in a row
  failed_at REAL,                                      -- the last of them
  open_until REAL,                                     -- null: the circuit is closed; past: one live claim at a time, the probe
  wake_at REAL AS (max(due_at, coalesce(open_until, due_at))),
  CONSTRAINT failures_is_not_negative CHECK (failures >= 0)
) STRICT, WITHOUT ROWID;

-- What was last told to a person, over all runners: told when it begins, hourly while it lasts, and when it ends.
CREATE TABLE main.dispatch_told (
  topic TEXT NOT NULL PRIMARY KEY,
  text TEXT NOT NULL,
  since REAL NOT NULL,
  told_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX main.dispatch_ready ON dispatch_outbox (deliver_to, next_attempt_at, seq, kind)
  WHERE status IN ('pending', 'delivering') AND ready = 1;
CREATE INDEX main.dispatch_line ON dispatch_outbox (ordering_key, seq) WHERE ordering_key IS NOT NULL AND status IN ('pending', 'delivering');
-- In flight: bounded by runners and their concurrency, so counting here is cheap and true.
CREATE INDEX main.dispatch_flight ON dispatch_outbox (deliver_to, next_attempt_at) WHERE status = 'delivering';
CREATE INDEX main.dispatch_key_flight ON dispatch_outbox (ordering_key, next_attempt_at) WHERE status = 'delivering' AND ordering_key IS NOT NULL;
-- Rows that end without permission: past their expiry, out of attempts.
CREATE INDEX main.dispatch_expiry ON dispatch_outbox (expires_at) WHERE status IN ('pending', 'delivering') AND expires_at IS NOT NULL;
CREATE INDEX main.dispatch_spent ON dispatch_outbox (next_attempt_at) WHERE status IN ('pending', 'delivering') AND attempt >= max_attempts;
-- Finished rows by the age of their final move, for retention.
CREATE INDEX main.dispatch_finished ON dispatch_outbox (status, updated_at) WHERE status NOT IN ('pending', 'delivering');
-- To whom the next slot goes: the fewest claims first, then who has waited longest. Those that are idle stand at its NULL ends.
CREATE INDEX main.dispatch_wake ON dispatch_destinations (flight, wake_at);
CREATE INDEX main.dispatch_open ON dispatch_destinations (open_until) WHERE open_until IS NOT NULL;
CREATE INDEX main.dispatch_hold_ends ON dispatch_holds (ends_at) WHERE ends_at IS NOT NULL;

-- TURN: a row that has not come to its end may go when no earlier one has its ordering key and nothing holds it.
CREATE VIEW main.dispatch_turn AS
SELECT seq, waits_for, held_by, waits_for IS NULL AND held_by IS NULL AS may_go FROM (
  SELECT o.seq,
    (SELECT p.seq FROM dispatch_outbox p INDEXED BY dispatch_line
     WHERE p.ordering_key = o.ordering_key AND p.ordering_key IS NOT NULL AND p.status IN ('pending', 'delivering') AND p.seq < o.seq
     ORDER BY p.seq LIMIT 1) AS waits_for,
    (SELECT h.id FROM dispatch_holds h
     WHERE (h.deliver_to IS NULL OR h.deliver_to = o.deliver_to) AND (h.kind IS NULL OR h.kind = o.kind)
       AND (h.ordering_key IS NULL OR h.ordering_key = o.ordering_key)
     ORDER BY h.id LIMIT 1) AS held_by
  FROM dispatch_outbox o);

-- A row enters: its own turn. (What enters has the greatest `seq`, unless a program chose one: then the row behind it too.)
CREATE TRIGGER main.dispatch_ready_enters AFTER INSERT ON dispatch_outbox
WHEN NEW.ordering_key IS NOT NULL OR NEW.ready = 0 OR EXISTS (SELECT 1 FROM dispatch_holds) BEGIN
  UPDATE dispatch_outbox SET ready = NOT ready
  WHERE seq IN (NEW.seq, (SELECT min(seq) FROM dispatch_outbox INDEXED BY dispatch_line
      WHERE ordering_key = NEW.ordering_key AND ordering_key IS NOT NULL AND status IN ('pending', 'delivering') AND seq > NEW.seq))
    AND ready <> (SELECT may_go FROM dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
END;

-- A row comes to its end, or back from it: its own turn, and that of the next of its key.
CREATE TRIGGER main.dispatch_ready_moves AFTER UPDATE OF status ON dispatch_outbox
WHEN (OLD.status IN ('pending', 'delivering')) <> (NEW.status IN ('pending', 'delivering'))
  AND (NEW.ordering_key IS NOT NULL OR NEW.status = 'pending') BEGIN
  UPDATE dispatch_outbox SET ready = NOT ready
  WHERE seq IN (NEW.seq, (SELECT min(seq) FROM dispatch_outbox INDEXED BY dispatch_line
      WHERE ordering_key = NEW.ordering_key AND ordering_key IS NOT NULL AND status IN ('pending', 'delivering') AND seq > NEW.seq))
    AND ready <> (SELECT may_go FROM dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
END;

CREATE TRIGGER main.dispatch_ready_leaves AFTER DELETE ON dispatch_outbox
WHEN OLD.ordering_key IS NOT NULL AND OLD.status IN ('pending', 'delivering') BEGIN
  UPDATE dispatch_outbox SET ready = NOT ready
  WHERE seq = (SELECT min(seq) FROM dispatch_outbox INDEXED BY dispatch_line
      WHERE ordering_key = OLD.ordering_key AND ordering_key IS NOT NULL AND status IN ('pending', 'delivering'))
    AND ready <> (SELECT may_go FROM dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
END;

-- A hold comes, or goes: the rows that it names. One statement for each way to find them, so that none reads finished rows.
CREATE TRIGGER main.dispatch_hold_begins AFTER INSERT ON dispatch_holds BEGIN
  UPDATE dispatch_outbox SET ready = 0 WHERE seq IN (
    SELECT seq FROM dispatch_outbox INDEXED BY dispatch_ready
    WHERE deliver_to = NEW.deliver_to AND status IN ('pending', 'delivering') AND ready = 1
      AND (NEW.kind IS NULL OR kind = NEW.kind) AND (NEW.ordering_key IS NULL OR ordering_key = NEW.ordering_key));
  UPDATE dispatch_outbox SET ready = 0 WHERE NEW.deliver_to IS NULL AND seq IN (
    SELECT seq FROM dispatch_outbox INDEXED BY dispatch_line
    WHERE ordering_key = NEW.ordering_key AND ordering_key IS NOT NULL AND status IN ('pending', 'delivering') AND ready = 1
      AND (NEW.kind IS NULL OR kind = NEW.kind));
  UPDATE dispatch_outbox SET ready = 0 WHERE NEW.deliver_to IS NULL AND NEW.ordering_key IS NULL AND seq IN (
    SELECT seq FROM dispatch_outbox INDEXED BY dispatch_ready
    WHERE status IN ('pending', 'delivering') AND ready = 1 AND (NEW.kind IS NULL OR kind = NEW.kind));
END;
CREATE TRIGGER main.dispatch_hold_is_written_once BEFORE UPDATE OF id, deliver_to, kind, ordering_key ON dispatch_holds BEGIN
  SELECT RAISE(ABORT, 'dispatch: what a hold names is written once; resume it and hold anew');
END;
CREATE TRIGGER main.dispatch_hold_is_over AFTER DELETE ON dispatch_holds BEGIN
  UPDATE dispatch_outbox SET ready = 1
  WHERE OLD.ordering_key IS NOT NULL AND seq IN (
      SELECT seq FROM dispatch_outbox INDEXED BY dispatch_line
      WHERE ordering_key = OLD.ordering_key AND ordering_key IS NOT NULL AND status IN ('pending', 'delivering') AND ready = 0)
    AND (SELECT may_go FROM dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
  UPDATE dispatch_outbox SET ready = 1
  WHERE OLD.ordering_key IS NULL AND seq IN (
      SELECT seq FROM dispatch_outbox INDEXED BY dispatch_due
      WHERE status IN ('pending', 'delivering') AND ready = 0
        AND (OLD.deliver_to IS NULL OR deliver_to = OLD.deliver_to) AND (OLD.kind IS NULL OR kind = OLD.kind))
    AND (SELECT may_go FROM dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
END;

-- What a destination's row keeps: the least due time of its ready rows, and its live claims as of the move's own clock.
CREATE TRIGGER main.dispatch_due_enters AFTER INSERT ON dispatch_outbox BEGIN
  INSERT INTO dispatch_destinations (deliver_to, due_at, flight)
  SELECT NEW.deliver_to, min(next_attempt_at), (SELECT count(*) FROM dispatch_outbox INDEXED BY dispatch_flight
    WHERE deliver_to = NEW.deliver_to AND status = 'delivering' AND next_attempt_at > NEW.updated_at)
  FROM dispatch_outbox INDEXED BY dispatch_ready
  WHERE deliver_to = NEW.deliver_to AND status IN ('pending', 'delivering') AND ready = 1
  ON CONFLICT (deliver_to) DO UPDATE SET due_at = excluded.due_at, flight = excluded.flight
  WHERE due_at IS NOT excluded.due_at OR flight <> excluded.flight;
END;
CREATE TRIGGER main.dispatch_due_moves AFTER UPDATE OF status, next_attempt_at, ready ON dispatch_outbox BEGIN
  INSERT INTO dispatch_destinations (deliver_to, due_at, flight)
  SELECT NEW.deliver_to, min(next_attempt_at), (SELECT count(*) FROM dispatch_outbox INDEXED BY dispatch_flight
    WHERE deliver_to = NEW.deliver_to AND status = 'delivering' AND next_attempt_at > NEW.updated_at)
  FROM dispatch_outbox INDEXED BY dispatch_ready
  WHERE deliver_to = NEW.deliver_to AND status IN ('pending', 'delivering') AND ready = 1
  ON CONFLICT (deliver_to) DO UPDATE SET due_at = excluded.due_at, flight = excluded.flight
  WHERE due_at IS NOT excluded.due_at OR flight <> excluded.flight;
END;
CREATE TRIGGER main.dispatch_due_leaves AFTER DELETE ON dispatch_outbox WHEN OLD.status IN ('pending', 'delivering') BEGIN
  INSERT INTO dispatch_destinations (deliver_to, due_at, flight)
  SELECT OLD.deliver_to, min(next_attempt_at), (SELECT count(*) FROM dispatch_outbox INDEXED BY dispatch_flight
    WHERE deliver_to = OLD.deliver_to AND status = 'delivering' AND next_attempt_at > OLD.updated_at)
  FROM dispatch_outbox INDEXED BY dispatch_ready
  WHERE deliver_to = OLD.deliver_to AND status IN ('pending', 'delivering') AND ready = 1
  ON CONFLICT (deliver_to) DO UPDATE SET due_at = excluded.due_at, flight = excluded.flight
  WHERE due_at IS NOT excluded.due_at OR flight <> excluded.flight;
END;

-- What is there already. The triggers above keep it from here on.
UPDATE main.dispatch_outbox SET ready = 0
WHERE status IN ('pending', 'delivering') AND ordering_key IS NOT NULL
  AND NOT (SELECT may_go FROM main.dispatch_turn t WHERE t.seq = dispatch_outbox.seq);
INSERT INTO main.dispatch_destinations (deliver_to, due_at, flight)
SELECT deliver_to, min(next_attempt_at) FILTER (WHERE ready = 1), count(*) FILTER (WHERE status = 'delivering')
FROM main.dispatch_outbox WHERE status IN ('pending', 'delivering') GROUP BY deliver_to
ON CONFLICT (deliver_to) DO UPDATE SET due_at = excluded.due_at, flight = excluded.flight;
