-- +goose Up
CREATE TABLE tasks (
  id            TEXT NOT NULL PRIMARY KEY,
  root_id       TEXT NOT NULL DEFAULT '',
  agent         TEXT NOT NULL DEFAULT '',
  text          TEXT NOT NULL DEFAULT '',
  repository    TEXT NOT NULL DEFAULT '',
  ref           TEXT NOT NULL DEFAULT '',
  key           TEXT NOT NULL DEFAULT '',
  complexity    TEXT NOT NULL DEFAULT '',
  requester_id  TEXT NOT NULL DEFAULT '',
  requester     TEXT NOT NULL DEFAULT '',
  via           TEXT NOT NULL DEFAULT '',
  revert_of     TEXT NOT NULL DEFAULT '',
  handoffs      BIGINT NOT NULL DEFAULT 0,
  last_seq      BIGINT NOT NULL DEFAULT 0, -- of its delegations
  last_n        BIGINT NOT NULL DEFAULT 0, -- of its events
  last_hash     TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL,
  ended_at      BIGINT
) WITHOUT ROWID;
CREATE UNIQUE INDEX tasks_key ON tasks (requester_id, key) WHERE key <> '';
CREATE INDEX tasks_ending ON tasks (substr(id, -6));
-- The row of the stream "system" is its lock and counter.
INSERT INTO tasks (id, created_at) VALUES ('system', 0);

-- "row" is the rowid: full-text search refers to it, so VACUUM must keep it.
CREATE TABLE delegations (
  row           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL,
  task_id       TEXT NOT NULL REFERENCES tasks (id),
  seq           BIGINT NOT NULL,
  parent_id     TEXT NOT NULL,
  from_agent    TEXT NOT NULL,
  to_agent      TEXT NOT NULL,
  text          TEXT NOT NULL,
  state         TEXT NOT NULL,
  depth         BIGINT NOT NULL,
  chain         TEXT NOT NULL,
  hop_key       TEXT NOT NULL,
  generation    BIGINT NOT NULL,
  repository    TEXT NOT NULL,
  requester     TEXT NOT NULL,
  result        TEXT,
  error         TEXT,
  input_tokens  BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  usd_micros    BIGINT,
  approval_id   TEXT NOT NULL,
  attempt       BIGINT NOT NULL,
  losses        BIGINT NOT NULL,
  holder        TEXT NOT NULL,
  lease_until   BIGINT NOT NULL,
  ready_at      BIGINT NOT NULL,
  open_children BIGINT NOT NULL,
  token_hash    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  started_at    BIGINT,
  ended_at      BIGINT,
  since         BIGINT NOT NULL,
  work          TEXT NOT NULL
);
CREATE UNIQUE INDEX delegations_id ON delegations (id);
CREATE UNIQUE INDEX delegations_task ON delegations (task_id, seq);
CREATE UNIQUE INDEX delegations_hop ON delegations (parent_id, generation, hop_key) WHERE parent_id <> '';
-- Only rows that a worker may take are in these two: parked ones cost a poll nothing.
CREATE INDEX delegations_ready ON delegations (ready_at) WHERE holder = '' AND state IN ('queued', 'checking', 'landing');
CREATE INDEX delegations_held ON delegations (lease_until) WHERE holder <> '';
CREATE INDEX delegations_token ON delegations (token_hash) WHERE token_hash <> '';
-- What each agent is doing, and how its last one ended.
CREATE INDEX delegations_live ON delegations (to_agent, state) WHERE ended_at IS NULL;
CREATE INDEX delegations_ended ON delegations (to_agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delegations_state ON delegations (state, id);
CREATE INDEX delegations_agent ON delegations (to_agent, id);
CREATE INDEX delegations_requester ON delegations (requester, id) WHERE requester <> '';
CREATE INDEX delegations_repository ON delegations (repository, id) WHERE repository <> '';
CREATE INDEX delegations_roots ON delegations (id) WHERE parent_id = '';
CREATE INDEX delegations_ending ON delegations (substr(id, -6));

-- External content: the text is not stored twice. Texts never change.
CREATE VIRTUAL TABLE delegations_fts USING fts5 (text, content = 'delegations', content_rowid = 'row', detail = 'full');
-- +goose StatementBegin
CREATE TRIGGER delegations_fts_insert AFTER INSERT ON delegations BEGIN
  INSERT INTO delegations_fts (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER delegations_fts_delete AFTER DELETE ON delegations BEGIN
  INSERT INTO delegations_fts (delegations_fts, rowid, text) VALUES ('delete', old.row, old.text);
END;
-- +goose StatementEnd

CREATE TABLE blobs (
  id         TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL,
  data       BLOB NOT NULL,
  created_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE blobs;
DROP TABLE delegations_fts;
DROP TABLE delegations;
DROP TABLE tasks;
