-- +goose Up
-- There is one writer, so the rowid is the position in the order over all tasks: it
-- is given inside the writing transaction and has no gaps.
CREATE TABLE events (
  pos           INTEGER PRIMARY KEY,
  task_id       TEXT NOT NULL,
  n             BIGINT NOT NULL,
  id            TEXT NOT NULL,
  type          TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  actor         TEXT NOT NULL,
  at            BIGINT NOT NULL,
  data          TEXT NOT NULL,
  prev_hash     TEXT NOT NULL,
  hash          TEXT NOT NULL
);
CREATE UNIQUE INDEX events_task ON events (task_id, n);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE VIEW event_order AS SELECT pos, task_id, n FROM events;
-- +goose StatementBegin
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;
-- +goose StatementEnd

CREATE TABLE checkpoints (
  pos        BIGINT NOT NULL PRIMARY KEY, -- last position that it covers
  prev       TEXT NOT NULL UNIQUE,        -- digest of the checkpoint before, so that none can fork
  heads_hash TEXT NOT NULL,
  at         BIGINT NOT NULL,
  key_id     TEXT NOT NULL,
  signature  BLOB NOT NULL
);

-- +goose Down
DROP TABLE checkpoints;
DROP VIEW event_order;
DROP TABLE events;
