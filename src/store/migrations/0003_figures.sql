-- Figures that cost nothing to read: counters, kept by trigger in the statement that makes the move. One small table, bounded by
-- construction: every status, result, reason and bound is one of a fixed few, and only the first hundred kinds have rows of their own.

CREATE TABLE main.dispatch_counters (
  name TEXT NOT NULL,
  kind TEXT NOT NULL,                                  -- '' where the counter knows none, and for all kinds past the first hundred
  label TEXT NOT NULL,
  n REAL NOT NULL,
  PRIMARY KEY (name, kind, label),
  CONSTRAINT name_is_known CHECK (name IN (
    'dispatches',                                      -- how many there are now, by status
    'dead',                                            -- how many dead letters there are now, by reason
    'kind',                                            -- a kind that is counted under its own name
    'attempts',                                        -- how many ended since the file was made, by kind and result
    'dead_letters',                                    -- how many died since the file was made, by kind and reason
    'lag',                                             -- claims by how late they were: the bound that they stay within, in seconds
    'lag_sum'))                                        -- how late all of them were together, in seconds
) STRICT, WITHOUT ROWID;

CREATE TRIGGER main.dispatch_counts_enter AFTER INSERT ON dispatch_outbox BEGIN
  UPDATE dispatch_counters SET n = n + 1 WHERE name = 'dispatches' AND kind = '' AND label = NEW.status;
END;

CREATE TRIGGER main.dispatch_counts_leave AFTER DELETE ON dispatch_outbox BEGIN
  UPDATE dispatch_counters SET n = n - 1 WHERE name = 'dispatches' AND kind = '' AND label = OLD.status;
  UPDATE dispatch_counters SET n = n - 1
  WHERE OLD.status = 'dead_letter' AND name = 'dead' AND kind = '' AND label = substr(OLD.reason_code, 22);
END;

CREATE TRIGGER main.dispatch_counts_status AFTER UPDATE OF status ON dispatch_outbox WHEN OLD.status <> NEW.status BEGIN
  UPDATE dispatch_counters SET n = n + (label = NEW.status) - (label = OLD.status)
  WHERE name = 'dispatches' AND kind = '' AND label IN (OLD.status, NEW.status);
  UPDATE dispatch_counters SET n = n - 1
  WHERE OLD.status = 'dead_letter' AND name = 'dead' AND kind = '' AND label = substr(OLD.reason_code, 22);
  INSERT INTO dispatch_counters (name, kind, label, n)
  SELECT 'dead', '', substr(NEW.reason_code, 22), 1 WHERE NEW.status = 'dead_letter'
  ON CONFLICT (name, kind, label) DO UPDATE SET n = n + 1;
END;

-- An attempt ended, whatever it came to, or a message died. A claim that another one took over, and one that ended because its lease
-- was over, had lost its runner: `lost`. Every other result is the last word of the reason.
CREATE TRIGGER main.dispatch_counts_end AFTER UPDATE OF status ON dispatch_outbox
WHEN OLD.status = 'delivering' OR (NEW.status = 'dead_letter' AND OLD.status <> 'dead_letter') BEGIN
  INSERT INTO dispatch_counters (name, kind, label, n)
  SELECT 'kind', NEW.kind, '', 0
  WHERE CASE WHEN EXISTS (SELECT 1 FROM dispatch_counters WHERE name = 'kind' AND kind = NEW.kind AND label = '') THEN 0
    ELSE (SELECT count(*) FROM dispatch_counters WHERE name = 'kind') < 100 END;
  INSERT INTO dispatch_counters (name, kind, label, n)
  SELECT 'attempts', coalesce((SELECT kind FROM dispatch_counters WHERE name = 'kind' AND kind = NEW.kind AND label = ''), ''),
    CASE WHEN NEW.reason_code IN ('dispatch.delivering.attempt', 'dispatch.expired.deadline', 'dispatch.expired.cancelled') THEN 'lost'
      ELSE substr(NEW.reason_code, instr(substr(NEW.reason_code, 10), '.') + 10) END, 1
  WHERE OLD.status = 'delivering'
  ON CONFLICT (name, kind, label) DO UPDATE SET n = n + 1;
  INSERT INTO dispatch_counters (name, kind, label, n)
  SELECT 'dead_letters', coalesce((SELECT kind FROM dispatch_counters WHERE name = 'kind' AND kind = NEW.kind AND label = ''), ''),
    substr(NEW.reason_code, 22), 1
  WHERE NEW.status = 'dead_letter'
  ON CONFLICT (name, kind, label) DO UPDATE SET n = n + 1;
END;

-- A claim: how long after its due time (or the end of the lease that it takes over) it was made.
CREATE TRIGGER main.dispatch_counts_claim AFTER UPDATE OF status ON dispatch_outbox WHEN NEW.status = 'delivering' BEGIN
  UPDATE dispatch_counters SET n = n + 1
  WHERE name = 'lag' AND kind = '' AND label = CASE
    WHEN NEW.updated_at - OLD.next_attempt_at <= 0.1 THEN '0.1' WHEN NEW.updated_at - OLD.next_attempt_at <= 0.5 THEN '0.5'
    WHEN NEW.updated_at - OLD.next_attempt_at <= 1 THEN '1' WHEN NEW.updated_at - OLD.next_attempt_at <= 5 THEN '5'
    WHEN NEW.updated_at - OLD.next_attempt_at <= 15 THEN '15' WHEN NEW.updated_at - OLD.next_attempt_at <= 60 THEN '60'
    WHEN NEW.updated_at - OLD.next_attempt_at <= 300 THEN '300' WHEN NEW.updated_at - OLD.next_attempt_at <= 900 THEN '900'
    WHEN NEW.updated_at - OLD.next_attempt_at <= 3600 THEN '3600' WHEN NEW.updated_at - OLD.next_attempt_at <= 21600 THEN '21600'
    WHEN NEW.updated_at - OLD.next_attempt_at <= 86400 THEN '86400' ELSE '+Inf' END;
  UPDATE dispatch_counters SET n = n + max(0, NEW.updated_at - OLD.next_attempt_at) WHERE name = 'lag_sum' AND kind = '' AND label = '';
END;

-- What is there already. The triggers above keep it from here on; how late past claims were is not known.
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'dispatches', '', s.column1, (SELECT count(*) FROM main.dispatch_outbox WHERE status = s.column1)
FROM (VALUES ('pending'), ('delivering'), ('delivered'), ('acked'), ('dead_letter'), ('expired')) AS s;
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'dead', '', substr(reason_code, 22), count(*) FROM main.dispatch_outbox WHERE status = 'dead_letter' GROUP BY 3;
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'kind', kind, '', 0 FROM (SELECT DISTINCT kind FROM main.dispatch_outbox ORDER BY kind LIMIT 100);
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'attempts', coalesce(k.kind, ''),
  CASE WHEN t.reason_code IN ('dispatch.delivering.attempt', 'dispatch.expired.deadline', 'dispatch.expired.cancelled') THEN 'lost'
    ELSE substr(t.reason_code, instr(substr(t.reason_code, 10), '.') + 10) END, count(*)
FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id
LEFT JOIN main.dispatch_counters k ON k.name = 'kind' AND k.kind = o.kind
WHERE t.entity_type = 'dispatch' AND t.previous_status = 'delivering' GROUP BY 2, 3;
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'dead_letters', coalesce(k.kind, ''), substr(t.reason_code, 22), count(*)
FROM main.status_transitions t JOIN main.dispatch_outbox o ON o.id = t.entity_id
LEFT JOIN main.dispatch_counters k ON k.name = 'kind' AND k.kind = o.kind
WHERE t.entity_type = 'dispatch' AND t.status = 'dead_letter' GROUP BY 2, 3;
INSERT INTO main.dispatch_counters (name, kind, label, n)
SELECT 'lag', '', s.column1, 0
FROM (VALUES ('0.1'), ('0.5'), ('1'), ('5'), ('15'), ('60'), ('300'), ('900'), ('3600'), ('21600'), ('86400'), ('+Inf')) AS s
UNION ALL SELECT 'lag_sum', '', '', 0;
