-- +goose Up
-- What lists filter requests by, a row for each value; the same as in requests.facets, which is '' until they were
-- made. shown: the request as a list shows it, so that a page reads no diffs.
ALTER TABLE requests ADD COLUMN facets TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN shown TEXT NOT NULL DEFAULT '';
CREATE INDEX requests_unsorted ON requests (id) WHERE facets = '';
CREATE TABLE request_facets (
  key        TEXT NOT NULL,
  value      TEXT NOT NULL,
  request_id TEXT NOT NULL REFERENCES requests (id),
  PRIMARY KEY (key, value, request_id)
) WITHOUT ROWID;

-- All that people may search for in a request: the task, the answers, the comments. "row" is the rowid: see delegations.
CREATE TABLE request_texts (
  row        INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE REFERENCES requests (id),
  text       TEXT NOT NULL
);
CREATE VIRTUAL TABLE request_words USING fts5 (text, content = 'request_texts', content_rowid = 'row', detail = 'full');
-- +goose StatementBegin
CREATE TRIGGER request_words_insert AFTER INSERT ON request_texts BEGIN
  INSERT INTO request_words (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER request_words_update AFTER UPDATE ON request_texts BEGIN
  INSERT INTO request_words (request_words, rowid, text) VALUES ('delete', old.row, old.text);
  INSERT INTO request_words (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER request_words_delete AFTER DELETE ON request_texts BEGIN
  INSERT INTO request_words (request_words, rowid, text) VALUES ('delete', old.row, old.text);
END;
-- +goose StatementEnd
INSERT INTO request_words (request_words, rank) VALUES ('secure-delete', 1); -- what retention removes is gone

-- The codes in the log: of refused hops, rejected patches and failures.
CREATE TABLE event_codes (
  event_id      TEXT NOT NULL PRIMARY KEY,
  type          TEXT NOT NULL,
  code          TEXT NOT NULL,
  delegation_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX event_codes_code ON event_codes (code, event_id);
CREATE INDEX event_codes_delegation ON event_codes (code, delegation_id);
CREATE INDEX event_codes_type ON event_codes (type, delegation_id);
CREATE INDEX event_codes_of ON event_codes (delegation_id);
INSERT INTO event_codes (event_id, type, code, delegation_id)
  SELECT id, type, json_extract(data, '$.code'), delegation_id FROM events
  WHERE type IN ('delegation.refused', 'delegation.failed', 'delegation.cancelled', 'patch.rejected') AND coalesce(json_extract(data, '$.code'), '') <> '';

-- Types that are in every task are found by walking back from the newest event.
CREATE INDEX events_type ON events (type, id) WHERE type NOT IN ('task.created', 'delegation.queued', 'delegation.acknowledged', 'delegation.progress',
  'delegation.delegated', 'delegation.waiting', 'delegation.resumed', 'delegation.completed', 'message.completed', 'tool.completed', 'usage.recorded',
  'context.read', 'context.written');
-- Whose verdict, and who asked.
CREATE INDEX events_actor ON events (actor, id) WHERE type IN ('approval.decided', 'task.created');
CREATE INDEX delegations_cost ON delegations (usd_micros, task_id) WHERE parent_id = '' AND usd_micros IS NOT NULL;
CREATE INDEX tasks_via ON tasks (via, root_id);

-- +goose Down
DROP INDEX tasks_via;
DROP INDEX delegations_cost;
DROP INDEX events_actor;
DROP INDEX events_type;
DROP TABLE event_codes;
DROP TABLE request_words;
DROP TABLE request_texts;
DROP TABLE request_facets;
DROP INDEX requests_unsorted;
ALTER TABLE requests DROP COLUMN shown;
ALTER TABLE requests DROP COLUMN facets;
