-- The SQL door: INSERT INTO dispatch_enqueue enters a dispatch from any language, within the caller's transaction. It refuses by name
-- what the library refuses, in every conflict mode, because RAISE(ABORT) is no conflict that OR IGNORE could swallow; and it makes the
-- same row, the same envelope to the byte. The limits are those of src/core/request.ts and origin.ts; tests hold them together.

-- Read, it shows what was entered in the words of the request. `not_before` is not kept; the body is the envelope's last member.
CREATE VIEW main.dispatch_enqueue AS
SELECT id, kind, deliver_to,
  CASE WHEN instr(payload, ',"body":') > 0
    THEN substr(payload, instr(payload, ',"body":') + 8, length(payload) - instr(payload, ',"body":') - 8) END AS body,
  dedup_key, ack_required, max_attempts, expires_at, NULL AS not_before, ordering_key, session_id, schedule_run_id,
  CASE WHEN json_valid(payload) THEN json_extract(payload, '$.emitter_role') END AS emitter_role,
  tenant_id, user_id, user_roles, correlation_id
FROM dispatch_outbox;

-- Between door and table: what is drawn (id, tokens) and read (the clock, in milliseconds) is given to it once, as a row. SQLite may
-- evaluate an expression of a subquery twice, and then column and envelope would have two ids; NEW.id is one value by definition.
CREATE VIEW main.dispatch_entry AS
SELECT NULL AS id, NULL AS signal_id, NULL AS ack_token, NULL AS ms, NULL AS kind, NULL AS deliver_to, NULL AS body, NULL AS dedup_key,
  NULL AS max_attempts, NULL AS expires_at, NULL AS not_before, NULL AS ordering_key, NULL AS session_id, NULL AS schedule_run_id,
  NULL AS emitter_role, NULL AS tenant_id, NULL AS user_id, NULL AS user_roles, NULL AS correlation_id
WHERE 0;

-- Bytes that are no UTF-8 would be read as others by everybody, and two keys could become one. A look at each character, at most 1 us a
-- byte: so only texts that are not plain ASCII come here.
CREATE VIEW main.dispatch_utf8 AS SELECT NULL AS field, NULL AS value WHERE 0;
CREATE TRIGGER main.dispatch_utf8_checks INSTEAD OF INSERT ON dispatch_utf8 BEGIN
  SELECT CASE NEW.field
    WHEN 'kind' THEN RAISE(ABORT, 'dispatch: kind is not valid UTF-8')
    WHEN 'deliver_to' THEN RAISE(ABORT, 'dispatch: deliver_to is not valid UTF-8')
    WHEN 'dedup_key' THEN RAISE(ABORT, 'dispatch: dedup_key is not valid UTF-8')
    WHEN 'ordering_key' THEN RAISE(ABORT, 'dispatch: ordering_key is not valid UTF-8')
    WHEN 'session_id' THEN RAISE(ABORT, 'dispatch: session_id is not valid UTF-8')
    WHEN 'schedule_run_id' THEN RAISE(ABORT, 'dispatch: schedule_run_id is not valid UTF-8')
    WHEN 'emitter_role' THEN RAISE(ABORT, 'dispatch: emitter_role is not valid UTF-8')
    WHEN 'tenant_id' THEN RAISE(ABORT, 'dispatch: tenant_id is not valid UTF-8')
    WHEN 'user_id' THEN RAISE(ABORT, 'dispatch: user_id is not valid UTF-8')
    WHEN 'user_roles' THEN RAISE(ABORT, 'dispatch: user_roles is not valid UTF-8')
    WHEN 'correlation_id' THEN RAISE(ABORT, 'dispatch: correlation_id is not valid UTF-8')
    WHEN 'body' THEN RAISE(ABORT, 'dispatch: body is not valid UTF-8') END
  WHERE EXISTS (
    WITH RECURSIVE at (i) AS (
      SELECT 1 UNION ALL
      SELECT i + CASE
        -- Runs at once: of ASCII, as far as its commoner characters go, and of letters of two and three bytes.
        WHEN substr(CAST(NEW.value AS BLOB), i, 1) < x'80' THEN max(1, length(CAST(substr(CAST(NEW.value AS BLOB), i, 64) AS TEXT))
          - length(ltrim(CAST(substr(CAST(NEW.value AS BLOB), i, 64) AS TEXT), ' etaoinsrhdlucmfywgpbvkxqjz,."0123456789:-_{}[]/')))
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 12))
          GLOB 'E[1-9A-CEF][89AB]?[89AB]?E[1-9A-CEF][89AB]?[89AB]?E[1-9A-CEF][89AB]?[89AB]?E[1-9A-CEF][89AB]?[89AB]?' THEN 12
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 8)) GLOB 'D?[89AB]?D?[89AB]?D?[89AB]?D?[89AB]?' THEN 8
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 2)) GLOB 'C[2-9A-F][89AB]?' THEN 2
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 2)) GLOB 'D?[89AB]?' THEN 2
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 3)) GLOB 'E[1-9A-CEF][89AB]?[89AB]?' THEN 3
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 3)) GLOB 'E0[AB]?[89AB]?' THEN 3
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 3)) GLOB 'ED[89]?[89AB]?' THEN 3
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 4)) GLOB 'F[1-3][89AB]?[89AB]?[89AB]?' THEN 4
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 4)) GLOB 'F0[9AB]?[89AB]?[89AB]?' THEN 4
        WHEN hex(substr(CAST(NEW.value AS BLOB), i, 4)) GLOB 'F48?[89AB]?[89AB]?' THEN 4 END
      FROM at WHERE i <= length(CAST(NEW.value AS BLOB)))
    SELECT 1 FROM at WHERE i IS NULL);
END;

CREATE TRIGGER main.dispatch_enqueue_enters INSTEAD OF INSERT ON dispatch_enqueue BEGIN
  SELECT CASE
    WHEN NEW.id IS NULL THEN NULL
    WHEN typeof(NEW.id) <> 'text' OR length(CAST(NEW.id AS BLOB)) <> 32 OR NEW.id GLOB '*[^0-9a-f]*'
      THEN RAISE(ABORT, 'dispatch: id is not 32 lower-case hex digits') END;
  SELECT CASE
    WHEN NEW.kind IS NULL THEN RAISE(ABORT, 'dispatch: kind is missing')
    WHEN typeof(NEW.kind) <> 'text' THEN RAISE(ABORT, 'dispatch: kind is not a text')
    WHEN NEW.kind = '' THEN RAISE(ABORT, 'dispatch: kind is empty')
    WHEN instr(CAST(NEW.kind AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: kind holds a NUL character')
    WHEN length(CAST(NEW.kind AS BLOB)) > 255 THEN RAISE(ABORT, 'dispatch: kind has more than 255 bytes') END;
  SELECT CASE
    WHEN NEW.deliver_to IS NULL THEN RAISE(ABORT, 'dispatch: deliver_to is missing')
    WHEN typeof(NEW.deliver_to) <> 'text' THEN RAISE(ABORT, 'dispatch: deliver_to is not a text')
    WHEN NEW.deliver_to = '' THEN RAISE(ABORT, 'dispatch: deliver_to is empty')
    WHEN instr(CAST(NEW.deliver_to AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: deliver_to holds a NUL character')
    WHEN length(CAST(NEW.deliver_to AS BLOB)) > 8192 THEN RAISE(ABORT, 'dispatch: deliver_to has more than 8192 bytes') END;
  SELECT CASE
    WHEN NEW.dedup_key IS NULL THEN NULL
    WHEN typeof(NEW.dedup_key) <> 'text' THEN RAISE(ABORT, 'dispatch: dedup_key is not a text')
    WHEN NEW.dedup_key = '' THEN RAISE(ABORT, 'dispatch: dedup_key is empty')
    WHEN instr(CAST(NEW.dedup_key AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: dedup_key holds a NUL character')
    WHEN length(CAST(NEW.dedup_key AS BLOB)) > 1024 THEN RAISE(ABORT, 'dispatch: dedup_key has more than 1024 bytes') END;
  SELECT CASE
    WHEN NEW.ordering_key IS NULL THEN NULL
    WHEN typeof(NEW.ordering_key) <> 'text' THEN RAISE(ABORT, 'dispatch: ordering_key is not a text')
    WHEN NEW.ordering_key = '' THEN RAISE(ABORT, 'dispatch: ordering_key is empty')
    WHEN instr(CAST(NEW.ordering_key AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: ordering_key holds a NUL character')
    WHEN length(CAST(NEW.ordering_key AS BLOB)) > 1024 THEN RAISE(ABORT, 'dispatch: ordering_key has more than 1024 bytes') END;
  SELECT CASE
    WHEN NEW.session_id IS NULL THEN NULL
    WHEN typeof(NEW.session_id) <> 'text' THEN RAISE(ABORT, 'dispatch: session_id is not a text')
    WHEN NEW.session_id = '' THEN RAISE(ABORT, 'dispatch: session_id is empty')
    WHEN instr(CAST(NEW.session_id AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: session_id holds a NUL character')
    WHEN length(CAST(NEW.session_id AS BLOB)) > 255 THEN RAISE(ABORT, 'dispatch: session_id has more than 255 bytes') END;
  SELECT CASE
    WHEN NEW.schedule_run_id IS NULL THEN NULL
    WHEN typeof(NEW.schedule_run_id) <> 'text' THEN RAISE(ABORT, 'dispatch: schedule_run_id is not a text')
    WHEN NEW.schedule_run_id = '' THEN RAISE(ABORT, 'dispatch: schedule_run_id is empty')
    WHEN instr(CAST(NEW.schedule_run_id AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: schedule_run_id holds a NUL character')
    WHEN length(CAST(NEW.schedule_run_id AS BLOB)) > 255 THEN RAISE(ABORT, 'dispatch: schedule_run_id has more than 255 bytes') END;
  SELECT CASE
    WHEN NEW.emitter_role IS NULL THEN NULL
    WHEN typeof(NEW.emitter_role) <> 'text' THEN RAISE(ABORT, 'dispatch: emitter_role is not a text')
    WHEN NEW.emitter_role = '' THEN RAISE(ABORT, 'dispatch: emitter_role is empty')
    WHEN instr(CAST(NEW.emitter_role AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: emitter_role holds a NUL character')
    WHEN length(CAST(NEW.emitter_role AS BLOB)) > 255 THEN RAISE(ABORT, 'dispatch: emitter_role has more than 255 bytes') END;
  SELECT CASE
    WHEN NEW.tenant_id IS NULL THEN NULL
    WHEN typeof(NEW.tenant_id) <> 'text' THEN RAISE(ABORT, 'dispatch: tenant_id is not a text')
    WHEN NEW.tenant_id = '' THEN RAISE(ABORT, 'dispatch: tenant_id is empty')
    WHEN instr(CAST(NEW.tenant_id AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: tenant_id holds a NUL character')
    WHEN length(NEW.tenant_id) > 64 THEN RAISE(ABORT, 'dispatch: tenant_id has more than 64 characters') END;
  SELECT CASE
    WHEN NEW.user_id IS NULL THEN NULL
    WHEN typeof(NEW.user_id) <> 'text' THEN RAISE(ABORT, 'dispatch: user_id is not a text')
    WHEN NEW.user_id = '' THEN RAISE(ABORT, 'dispatch: user_id is empty')
    WHEN instr(CAST(NEW.user_id AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: user_id holds a NUL character')
    WHEN length(NEW.user_id) > 64 THEN RAISE(ABORT, 'dispatch: user_id has more than 64 characters') END;
  SELECT CASE
    WHEN NEW.user_roles IS NULL THEN NULL
    WHEN typeof(NEW.user_roles) <> 'text' THEN RAISE(ABORT, 'dispatch: user_roles is not a text')
    WHEN NEW.user_roles = '' THEN RAISE(ABORT, 'dispatch: user_roles is empty')
    WHEN instr(CAST(NEW.user_roles AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: user_roles holds a NUL character')
    WHEN length(NEW.user_roles) > 512 AND substr(NEW.user_roles, 2, 512) NOT GLOB '*,*'
      THEN RAISE(ABORT, 'dispatch: user_roles begins with a role of more than 512 characters') END;
  SELECT CASE
    WHEN NEW.correlation_id IS NULL THEN NULL
    WHEN typeof(NEW.correlation_id) <> 'text' THEN RAISE(ABORT, 'dispatch: correlation_id is not a text')
    WHEN NEW.correlation_id = '' THEN RAISE(ABORT, 'dispatch: correlation_id is empty')
    WHEN instr(CAST(NEW.correlation_id AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: correlation_id holds a NUL character')
    WHEN length(NEW.correlation_id) > 64 THEN RAISE(ABORT, 'dispatch: correlation_id has more than 64 characters') END;
  SELECT CASE
    WHEN NEW.ack_required IS NULL THEN NULL
    WHEN typeof(NEW.ack_required) NOT IN ('integer', 'real') OR NEW.ack_required NOT IN (0, 1)
      THEN RAISE(ABORT, 'dispatch: ack_required is neither 0 nor 1') END;
  SELECT CASE
    WHEN NEW.max_attempts IS NULL THEN NULL
    WHEN typeof(NEW.max_attempts) NOT IN ('integer', 'real') OR NEW.max_attempts <> CAST(NEW.max_attempts AS INTEGER)
      OR NEW.max_attempts NOT BETWEEN 1 AND 1000000 THEN RAISE(ABORT, 'dispatch: max_attempts is not a whole number from 1 to 1000000') END;
  SELECT CASE
    WHEN NEW.not_before IS NULL THEN NULL
    WHEN typeof(NEW.not_before) NOT IN ('integer', 'real') OR NEW.not_before NOT BETWEEN 0 AND 253402300799
      THEN RAISE(ABORT, 'dispatch: not_before is not a time in epoch seconds between 1970 and 9999') END;
  SELECT CASE
    WHEN NEW.expires_at IS NULL THEN NULL
    WHEN typeof(NEW.expires_at) NOT IN ('integer', 'real') OR NEW.expires_at NOT BETWEEN 0 AND 253402300799
      THEN RAISE(ABORT, 'dispatch: expires_at is not a time in epoch seconds between 1970 and 9999')
    WHEN NEW.expires_at <= NEW.not_before THEN RAISE(ABORT, 'dispatch: expires_at does not lie after not_before') END;
  SELECT CASE
    WHEN NEW.body IS NULL THEN NULL
    WHEN typeof(NEW.body) <> 'text' THEN RAISE(ABORT, 'dispatch: body is not a text')
    WHEN length(CAST(NEW.body AS BLOB)) > 1048576 THEN RAISE(ABORT, 'dispatch: body has more than 1048576 bytes')
    WHEN instr(CAST(NEW.body AS BLOB), x'00') THEN RAISE(ABORT, 'dispatch: body holds a NUL character')
    WHEN NOT json_valid(NEW.body) THEN RAISE(ABORT, 'dispatch: body is not JSON')
    WHEN substr(ltrim(NEW.body, ' ' || char(9, 10, 13)), 1, 1) <> '{' AND trim(NEW.body, ' ' || char(9, 10, 13)) <> 'null'
      THEN RAISE(ABORT, 'dispatch: body is not a JSON object') END;
  INSERT INTO dispatch_utf8 (field, value) SELECT 'body', NEW.body WHERE NEW.body GLOB '*[^' || char(1) || '-' || char(127) || ']*';
  INSERT INTO dispatch_utf8 (field, value) SELECT field, value FROM (
    SELECT 'kind' AS field, NEW.kind AS value UNION ALL SELECT 'deliver_to', NEW.deliver_to
    UNION ALL SELECT 'dedup_key', NEW.dedup_key UNION ALL SELECT 'ordering_key', NEW.ordering_key
    UNION ALL SELECT 'session_id', NEW.session_id UNION ALL SELECT 'schedule_run_id', NEW.schedule_run_id
    UNION ALL SELECT 'emitter_role', NEW.emitter_role UNION ALL SELECT 'tenant_id', NEW.tenant_id
    UNION ALL SELECT 'user_id', NEW.user_id UNION ALL SELECT 'user_roles', NEW.user_roles
    UNION ALL SELECT 'correlation_id', NEW.correlation_id)
  WHERE value GLOB '*[^' || char(1) || '-' || char(127) || ']*';
  -- So many levels need so many brackets and so much text: ordinary bodies are not taken apart.
  SELECT RAISE(ABORT, 'dispatch: body is nested deeper than 512 levels')
  WHERE length(NEW.body) > 1024 AND 2 * length(NEW.body) - length(replace(NEW.body, '{', '')) - length(replace(NEW.body, '[', '')) > 512
    AND EXISTS (
    WITH RECURSIVE level (depth, text) AS (
      SELECT 1, NEW.body UNION ALL
      SELECT depth + 1, part.value FROM level JOIN json_each(level.text) AS part
      WHERE part.type IN ('object', 'array') AND depth < 513 AND length(part.value) >= 2 * (513 - depth))
    SELECT 1 FROM level WHERE depth = 513);
  -- `\ud800` to `\udfff`: halves of a character. `text` is the body without escaped backslashes, in lower case.
  SELECT RAISE(ABORT, 'dispatch: body has an escaped lone surrogate, half of a character')
  FROM (SELECT lower(replace(NEW.body, '\\', '__')) AS text WHERE instr(NEW.body, '\ud') OR instr(NEW.body, '\uD'))
  WHERE text GLOB '*\ud[89ab]??[^\]*' OR text GLOB '*\ud[89ab]??\[^u]*' OR text GLOB '*\ud[89ab]??\u[^d]*'
    OR text GLOB '*\ud[89ab]??\ud[^c-f]*'
    -- Every high half is followed by a low one: then there are as many of both, or a low one stands alone.
    OR length(replace(replace(replace(replace(text, '\ud8', ''), '\ud9', ''), '\uda', ''), '\udb', ''))
      <> length(replace(replace(replace(replace(text, '\udc', ''), '\udd', ''), '\ude', ''), '\udf', ''));
  -- The first row of a dedup key stands, and its producer is not told.
  INSERT INTO dispatch_entry (id, signal_id, ack_token, ms, kind, deliver_to, body, dedup_key, max_attempts, expires_at, not_before,
    ordering_key, session_id, schedule_run_id, emitter_role, tenant_id, user_id, user_roles, correlation_id)
  SELECT
    coalesce(NEW.id, printf('%012x', CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))
      || '7' || substr(lower(hex(randomblob(2))), 2) || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(8))), 2)),
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
      || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6))),
    CASE WHEN NEW.ack_required THEN lower(hex(randomblob(16))) END,
    CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER),
    NEW.kind, NEW.deliver_to, coalesce(nullif(trim(NEW.body, ' ' || char(9, 10, 13)), 'null'), '{}'), NEW.dedup_key,
    coalesce(CAST(NEW.max_attempts AS INTEGER), 8), NEW.expires_at, NEW.not_before, NEW.ordering_key, NEW.session_id, NEW.schedule_run_id,
    NEW.emitter_role, NEW.tenant_id, NEW.user_id,
    -- What ends with the last comma within, less that comma: rtrim takes away all that is no comma.
    CASE WHEN length(NEW.user_roles) > 512
      THEN substr(NEW.user_roles, 1, length(rtrim(substr(NEW.user_roles, 1, 513), replace(substr(NEW.user_roles, 1, 513), ',', ''))) - 1)
      ELSE NEW.user_roles END,
    NEW.correlation_id
  WHERE NOT EXISTS (SELECT 1 FROM dispatch_outbox WHERE dedup_key = NEW.dedup_key AND dedup_key IS NOT NULL);
END;

CREATE TRIGGER main.dispatch_entry_enters INSTEAD OF INSERT ON dispatch_entry BEGIN
  INSERT INTO dispatch_outbox (id, kind, deliver_to, payload, dedup_key, ordering_key, max_attempts, next_attempt_at, ack_required, ack_token,
    session_id, schedule_run_id, tenant_id, user_id, user_roles, correlation_id, created_at, expires_at, updated_at, reason_code,
    reason_summary, source, actor)
  VALUES (NEW.id, NEW.kind, NEW.deliver_to,
    -- ADR-0059 D1. `|| ''` makes a text of what json_quote would else take for JSON: the result of another JSON function.
    '{"id":"' || NEW.signal_id || '","created_at":' || rtrim(rtrim(printf('%d.%03d', NEW.ms / 1000, NEW.ms % 1000), '0'), '.')
      || ',"metadata":{"lion_class":"lionagi.session.signal.DispatchSignal"},"data":null,"emitter_role":' || json_quote(NEW.emitter_role || '')
      || ',"schema_version":1,"dispatch_id":"' || NEW.id || '","kind":' || json_quote(NEW.kind || '')
      || ',"deliver_to":' || json_quote(NEW.deliver_to || '') || ',"attempt":0,"ack_token":' || json_quote(NEW.ack_token)
      || ',"body":' || NEW.body || '}',
    NEW.dedup_key, NEW.ordering_key, NEW.max_attempts,
    min(max(coalesce(NEW.not_before, 0), NEW.ms / 1000.0), coalesce(NEW.expires_at, 1e15)),
    NEW.ack_token IS NOT NULL, NEW.ack_token, NEW.session_id, NEW.schedule_run_id, NEW.tenant_id, NEW.user_id, NEW.user_roles,
    NEW.correlation_id, NEW.ms / 1000.0, NEW.expires_at, NEW.ms / 1000.0, 'dispatch.pending.enqueued', 'enqueued kind=' || NEW.kind, 'system',
    'enqueue_dispatch');
  -- OR IGNORE passes over what a CHECK refuses: nothing is accepted without its row.
  SELECT RAISE(ABORT, 'dispatch: the row was not written') WHERE NOT EXISTS (SELECT 1 FROM dispatch_outbox WHERE id = NEW.id);
END;
