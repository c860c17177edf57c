-- What a consumer has handled, so that a message that comes twice is handled once. An entry is begun by whoever works at it, and done
-- when its success is recorded; a failure removes it, and one whose process has ended may be taken over.

CREATE TABLE main.dispatch_inbox (
  consumer TEXT NOT NULL,
  dispatch_id TEXT NOT NULL,                           -- of this database or of another one
  begun_at REAL NOT NULL,
  holder TEXT,                                         -- host, pid and process start time of whoever works at it
  token TEXT,                                          -- random proof of working at it, new with every beginning
  done_at REAL,                                        -- when its success was recorded; null: somebody works at it, or died
  PRIMARY KEY (consumer, dispatch_id),
  CONSTRAINT consumer_is_not_empty CHECK (consumer <> ''),
  CONSTRAINT consumer_has_no_nul CHECK (instr(consumer, char(0)) = 0),
  CONSTRAINT consumer_has_at_most_255_bytes CHECK (length(CAST(consumer AS BLOB)) <= 255),
  CONSTRAINT dispatch_id_is_32_hex_digits CHECK (length(CAST(dispatch_id AS BLOB)) = 32 AND dispatch_id NOT GLOB '*[^0-9a-f]*'),
  CONSTRAINT token_if_and_only_if_not_done CHECK ((token IS NULL) = (done_at IS NOT NULL)),
  CONSTRAINT holder_if_and_only_if_not_done CHECK ((holder IS NULL) = (done_at IS NOT NULL)),
  CONSTRAINT begun_at_is_finite CHECK (abs(begun_at) <= 1e15),
  CONSTRAINT done_at_is_finite CHECK (abs(done_at) <= 1e15)
) STRICT, WITHOUT ROWID;

-- By age, for retention.
CREATE INDEX main.dispatch_inbox_age ON dispatch_inbox (coalesce(done_at, begun_at));
