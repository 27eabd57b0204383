-- +goose Up
-- Who read, wrote, touched or deleted what. The reads of one entry by one delegation are one row.
CREATE TABLE context_uses (
  n             INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace     VARCHAR(64) NOT NULL,
  key_name      VARCHAR(128) NOT NULL,
  kind          TEXT NOT NULL,
  agent         TEXT NOT NULL,
  delegation_id TEXT NOT NULL DEFAULT '', -- '' for people
  task_id       TEXT NOT NULL DEFAULT '',
  at            BIGINT NOT NULL
);
CREATE INDEX context_uses_entry ON context_uses (namespace, key_name, n);
CREATE UNIQUE INDEX context_uses_reads ON context_uses (delegation_id, namespace, key_name) WHERE kind = 'read';
CREATE INDEX context_uses_at ON context_uses (at);
CREATE INDEX context_updated ON agent_shared_context (updated_at);

-- +goose Down
DROP INDEX context_updated;
DROP TABLE context_uses;
