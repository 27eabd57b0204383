-- +goose Up
CREATE TABLE events (
  task_id       TEXT COLLATE "C" NOT NULL,
  n             BIGINT NOT NULL,
  id            TEXT COLLATE "C" NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  delegation_id TEXT COLLATE "C" NOT NULL,
  actor         TEXT NOT NULL,
  at            BIGINT NOT NULL,
  data          TEXT NOT NULL,
  prev_hash     TEXT NOT NULL,
  hash          TEXT NOT NULL,
  PRIMARY KEY (task_id, n)
);
-- +goose StatementBegin
CREATE FUNCTION events_are_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are immutable';
END $$;
-- +goose StatementEnd
CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION events_are_immutable();
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION events_are_immutable();

-- The order over all tasks. Only the node that holds the lease "sequencer" writes it;
-- it takes what is to be ordered out of event_queue, where each transaction that
-- appends leaves one row. id ascends within a task, because its row was locked.
CREATE TABLE event_order (
  pos     BIGINT NOT NULL PRIMARY KEY,
  task_id TEXT COLLATE "C" NOT NULL,
  n       BIGINT NOT NULL,
  UNIQUE (task_id, n)
);
CREATE TABLE event_queue (
  id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task_id TEXT COLLATE "C" NOT NULL,
  first_n BIGINT NOT NULL,
  last_n  BIGINT NOT NULL
);

CREATE TABLE checkpoints (
  pos        BIGINT NOT NULL PRIMARY KEY, -- last position that it covers
  prev       TEXT NOT NULL UNIQUE,        -- digest of the checkpoint before, so that none can fork
  heads_hash TEXT NOT NULL,
  at         BIGINT NOT NULL,
  key_id     TEXT NOT NULL,
  signature  BYTEA NOT NULL
);

-- +goose Down
DROP TABLE checkpoints;
DROP TABLE event_queue;
DROP TABLE event_order;
DROP TABLE events;
DROP FUNCTION events_are_immutable();
