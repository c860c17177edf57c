-- The outbox: one row a dispatch, its history, what operators did. Frozen: later schemas only add (0002 and on).
-- Readable and usable by SQLite 3.38 with trusted_schema at its default: no later syntax. Names `main.`, because it may run
-- on a program's own handle, where a TEMP table could shadow.

CREATE TABLE main.dispatch_schema (version INTEGER NOT NULL) STRICT;

-- Every move there is. Seeded from EDGES (src/core/lifecycle.ts); a test holds the two together. '' is the row's birth.
CREATE TABLE main.dispatch_edges (
  from_status TEXT NOT NULL,
  to_status TEXT NOT NULL,
  reason_code TEXT NOT NULL,
  PRIMARY KEY (from_status, to_status, reason_code)
) STRICT, WITHOUT ROWID;

INSERT INTO main.dispatch_edges (from_status, to_status, reason_code) VALUES
  ('', 'pending', 'dispatch.pending.enqueued'),
  ('pending', 'delivering', 'dispatch.delivering.attempt'),
  ('delivering', 'delivering', 'dispatch.delivering.attempt'),
  ('delivering', 'delivered', 'dispatch.delivered.transport_ok'),
  ('delivering', 'pending', 'dispatch.delivered.transport_ok'),
  ('delivering', 'pending', 'dispatch.pending.retry_backoff'),
  ('delivering', 'pending', 'dispatch.pending.released'),
  ('delivering', 'pending', 'dispatch.pending.config_fault'),
  ('delivering', 'dead_letter', 'dispatch.dead_letter.max_attempts'),
  ('delivering', 'dead_letter', 'dispatch.dead_letter.unresolvable'),
  ('delivering', 'dead_letter', 'dispatch.dead_letter.rejected'),
  ('pending', 'dead_letter', 'dispatch.dead_letter.ack_timeout'),
  ('pending', 'dead_letter', 'dispatch.dead_letter.max_attempts'),
  ('pending', 'expired', 'dispatch.expired.deadline'),
  ('delivering', 'expired', 'dispatch.expired.deadline'),
  ('pending', 'expired', 'dispatch.expired.cancelled'),
  ('delivering', 'expired', 'dispatch.expired.cancelled'),
  ('pending', 'acked', 'dispatch.acked.consumer'),
  ('delivering', 'acked', 'dispatch.acked.consumer'),
  ('dead_letter', 'pending', 'dispatch.pending.operator_retry'),
  ('expired', 'pending', 'dispatch.pending.operator_retry');

CREATE TABLE main.dispatch_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  deliver_to TEXT NOT NULL,
  payload TEXT NOT NULL,
  dedup_key TEXT,
  ordering_key TEXT,
  status TEXT NOT NULL DEFAULT 'pending',
  attempt INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL DEFAULT 8,
  next_attempt_at REAL NOT NULL,                       -- pending: due time; delivering: end of the lease
  ack_required INTEGER NOT NULL DEFAULT 0,
  ack_token TEXT,
  lock_token TEXT,                                     -- random proof of holding the lease, new with every claim
  holder TEXT,                                         -- host, pid and process start time of the claimant
  unresolved INTEGER NOT NULL DEFAULT 0,
  session_id TEXT,
  schedule_run_id TEXT,
  tenant_id TEXT,
  user_id TEXT,
  user_roles TEXT,
  correlation_id TEXT,
  last_error TEXT,
  created_at REAL NOT NULL,
  expires_at REAL,
  -- the last move; the trigger copies it into the history
  updated_at REAL NOT NULL,
  reason_code TEXT NOT NULL DEFAULT 'dispatch.pending.enqueued',
  reason_summary TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT 'system',
  actor TEXT NOT NULL DEFAULT 'enqueue_dispatch',
  metadata TEXT NOT NULL DEFAULT '{}',
  CONSTRAINT seq_is_positive CHECK (seq > 0),
  -- in bytes: as a text its length ends at a NUL
  CONSTRAINT id_is_32_hex_digits CHECK (length(CAST(id AS BLOB)) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
  CONSTRAINT kind_is_not_empty CHECK (kind <> ''),
  CONSTRAINT deliver_to_is_not_empty CHECK (deliver_to <> ''),
  CONSTRAINT dedup_key_is_not_empty CHECK (dedup_key <> ''),
  CONSTRAINT ordering_key_is_not_empty CHECK (ordering_key <> ''),
  CONSTRAINT payload_is_json CHECK (json_valid(payload)),
  CONSTRAINT metadata_is_json CHECK (json_valid(metadata)),
  CONSTRAINT status_is_known CHECK (status IN ('pending', 'delivering', 'delivered', 'acked', 'dead_letter', 'expired')),
  CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0),
  CONSTRAINT max_attempts_is_positive CHECK (max_attempts > 0),
  CONSTRAINT unresolved_is_not_negative CHECK (unresolved >= 0),
  CONSTRAINT ack_required_is_0_or_1 CHECK (ack_required IN (0, 1)),
  CONSTRAINT ack_token_if_and_only_if_ack_required CHECK ((ack_required = 1) = (ack_token IS NOT NULL)),
  CONSTRAINT lock_token_if_and_only_if_delivering CHECK ((status = 'delivering') = (lock_token IS NOT NULL)),
  CONSTRAINT holder_only_while_delivering CHECK (status = 'delivering' OR holder IS NULL),
  CONSTRAINT pending_is_due_before_it_expires CHECK (status <> 'pending' OR expires_at IS NULL OR next_attempt_at <= expires_at),
  CONSTRAINT next_attempt_at_is_finite CHECK (abs(next_attempt_at) <= 1e15),
  CONSTRAINT created_at_is_finite CHECK (abs(created_at) <= 1e15),
  CONSTRAINT updated_at_is_finite CHECK (abs(updated_at) <= 1e15),
  CONSTRAINT expires_at_is_finite CHECK (abs(expires_at) <= 1e15)
) STRICT;

CREATE UNIQUE INDEX main.dispatch_dedup ON dispatch_outbox (dedup_key) WHERE dedup_key IS NOT NULL;
CREATE INDEX main.dispatch_due ON dispatch_outbox (status, next_attempt_at) WHERE status IN ('pending', 'delivering');

CREATE TABLE main.status_transitions (
  id INTEGER PRIMARY KEY,
  entity_type TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  previous_status TEXT,
  status TEXT NOT NULL,
  reason_code TEXT NOT NULL,
  reason_summary TEXT NOT NULL,
  evidence_refs TEXT NOT NULL DEFAULT '[]',
  source TEXT NOT NULL,
  actor TEXT NOT NULL,
  created_at REAL NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  CONSTRAINT evidence_refs_is_json CHECK (json_valid(evidence_refs)),
  CONSTRAINT metadata_is_json CHECK (json_valid(metadata)),
  CONSTRAINT created_at_is_finite CHECK (abs(created_at) <= 1e15)
) STRICT;
CREATE INDEX main.status_transitions_of_entity ON status_transitions (entity_id, id);

CREATE TABLE main.admin_events (
  id INTEGER PRIMARY KEY,
  created_at REAL NOT NULL,
  action TEXT NOT NULL,
  target_id TEXT,
  details TEXT NOT NULL DEFAULT '{}',
  actor TEXT NOT NULL,
  CONSTRAINT details_is_json CHECK (json_valid(details)),
  CONSTRAINT created_at_is_finite CHECK (abs(created_at) <= 1e15)
) STRICT;
CREATE INDEX main.admin_events_of_target ON admin_events (target_id, id) WHERE target_id IS NOT NULL;

-- OR REPLACE would delete the row that holds the value, unseen and without history.
CREATE TRIGGER main.dispatch_never_replaces BEFORE INSERT ON dispatch_outbox BEGIN
  SELECT RAISE(ABORT, 'dispatch: this seq is taken') WHERE EXISTS (SELECT 1 FROM dispatch_outbox WHERE seq = NEW.seq);
  SELECT RAISE(ABORT, 'dispatch: this id is taken') WHERE EXISTS (SELECT 1 FROM dispatch_outbox WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'dispatch: this dedup_key is taken') WHERE EXISTS (SELECT 1 FROM dispatch_outbox WHERE dedup_key = NEW.dedup_key);
END;

CREATE TRIGGER main.dispatch_written_once
BEFORE UPDATE OF id, kind, deliver_to, payload, dedup_key, ordering_key, ack_token, created_at ON dispatch_outbox
WHEN OLD.id IS NOT NEW.id OR OLD.kind IS NOT NEW.kind OR OLD.deliver_to IS NOT NEW.deliver_to
  OR OLD.payload IS NOT NEW.payload OR OLD.dedup_key IS NOT NEW.dedup_key OR OLD.ordering_key IS NOT NEW.ordering_key
  OR OLD.ack_token IS NOT NEW.ack_token OR OLD.created_at IS NOT NEW.created_at
BEGIN
  SELECT RAISE(ABORT, 'dispatch: id, kind, deliver_to, payload, dedup_key, ordering_key, ack_token and created_at are written once');
END;

-- Under its other names (rowid, oid) an UPDATE OF list does not see it, and OR REPLACE would delete the row that has the number.
CREATE TRIGGER main.dispatch_seq_is_written_once BEFORE UPDATE ON dispatch_outbox WHEN OLD.seq IS NOT NEW.seq BEGIN
  SELECT RAISE(ABORT, 'dispatch: seq is written once');
END;

-- Both history triggers end by asking whether the history row was written: under OR IGNORE a failed insert is silent.
CREATE TRIGGER main.dispatch_enters AFTER INSERT ON dispatch_outbox BEGIN
  SELECT RAISE(ABORT, 'dispatch: a row enters as pending, reason dispatch.pending.enqueued')
  WHERE NOT EXISTS (SELECT 1 FROM dispatch_edges WHERE from_status = '' AND to_status = NEW.status AND reason_code = NEW.reason_code);
  SELECT RAISE(ABORT, 'dispatch: a row enters with attempt 0') WHERE NEW.attempt <> 0;
  INSERT INTO status_transitions (entity_type, entity_id, previous_status, status, reason_code, reason_summary, source, actor, created_at, metadata)
  VALUES ('dispatch', NEW.id, NULL, NEW.status, NEW.reason_code, NEW.reason_summary, NEW.source, NEW.actor, NEW.updated_at, NEW.metadata);
  SELECT RAISE(ABORT, 'dispatch: the history row was not written') WHERE changes() <> 1;
END;

-- A statement that sets any of these columns makes a move, also when the status stays.
CREATE TRIGGER main.dispatch_moves
AFTER UPDATE OF status, attempt, lock_token, reason_code, reason_summary, source, actor, metadata ON dispatch_outbox BEGIN
  SELECT RAISE(ABORT, 'dispatch: this move is not in the lifecycle')
  WHERE NOT EXISTS (SELECT 1 FROM dispatch_edges WHERE from_status = OLD.status AND to_status = NEW.status AND reason_code = NEW.reason_code);
  SELECT RAISE(ABORT, 'dispatch: the attempt number does not follow from the move')
  WHERE NEW.attempt <> CASE
    WHEN NEW.status = 'delivering' THEN OLD.attempt + 1
    WHEN NEW.reason_code IN ('dispatch.pending.released', 'dispatch.pending.config_fault') THEN OLD.attempt - 1
    WHEN NEW.reason_code = 'dispatch.pending.operator_retry' THEN 0
    ELSE OLD.attempt END;
  SELECT RAISE(ABORT, 'dispatch: the lease is not over')
  WHERE OLD.status = 'delivering' AND NEW.status IN ('delivering', 'expired') AND OLD.next_attempt_at > NEW.updated_at;
  SELECT RAISE(ABORT, 'dispatch: a claim needs a new lock token') WHERE NEW.status = 'delivering' AND NEW.lock_token IS OLD.lock_token;
  SELECT RAISE(ABORT, 'dispatch: delivered is for rows without ack_required, sent and waiting for those with it')
  WHERE NEW.reason_code = 'dispatch.delivered.transport_ok' AND NEW.ack_required <> (NEW.status = 'pending');
  INSERT INTO status_transitions (entity_type, entity_id, previous_status, status, reason_code, reason_summary, source, actor, created_at, metadata)
  VALUES ('dispatch', NEW.id, OLD.status, NEW.status, NEW.reason_code, NEW.reason_summary, NEW.source, NEW.actor, NEW.updated_at, NEW.metadata);
  SELECT RAISE(ABORT, 'dispatch: the history row was not written') WHERE changes() <> 1;
END;

INSERT INTO main.dispatch_schema (version) VALUES (1);
