-- +goose Up
-- What lists filter requests by, a row for each value; the same as in requests.facets, which is '' until they were
-- made. shown: the request as a list shows it, so that a page reads no diffs.
ALTER TABLE requests ADD COLUMN facets TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN shown TEXT NOT NULL DEFAULT '';
CREATE INDEX requests_unsorted ON requests (id) WHERE facets = '';
CREATE TABLE request_facets (
  key        TEXT COLLATE "C" NOT NULL,
  value      TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL REFERENCES requests (id),
  PRIMARY KEY (key, value, request_id)
);

-- All that people may search for in a request: the task, the answers, the comments. Punctuation is cut: see delegations.
CREATE TABLE request_texts (
  request_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES requests (id),
  text       TEXT NOT NULL,
  words      TSVECTOR GENERATED ALWAYS AS (
    to_tsvector('simple', translate(text, './\-_:@#''"`<>()[]{}=+*&|,;!?', repeat(' ', 40)))) STORED
);
CREATE INDEX request_words ON request_texts USING gin (words);

-- The codes in the log: of refused hops, rejected patches and failures.
CREATE TABLE event_codes (
  event_id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  type          TEXT NOT NULL,
  code          TEXT NOT NULL,
  delegation_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX event_codes_code ON event_codes (code, event_id);
CREATE INDEX event_codes_delegation ON event_codes (code, delegation_id);
CREATE INDEX event_codes_type ON event_codes (type, delegation_id);
CREATE INDEX event_codes_of ON event_codes (delegation_id);
-- No jsonb: it refuses \u0000, which a message may hold.
INSERT INTO event_codes (event_id, type, code, delegation_id)
  SELECT id, type, substring(data from '"code":"([a-z0-9_.-]{1,64})"'), delegation_id FROM events
  WHERE type IN ('delegation.refused', 'delegation.failed', 'delegation.cancelled', 'patch.rejected') AND data ~ '"code":"[a-z0-9_.-]{1,64}"';

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
DROP TABLE request_texts;
DROP TABLE request_facets;
DROP INDEX requests_unsorted;
ALTER TABLE requests DROP COLUMN shown;
ALTER TABLE requests DROP COLUMN facets;
