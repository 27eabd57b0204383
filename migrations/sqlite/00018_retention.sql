-- +goose Up
-- What retention has removed of an ended task: 1 where a pass has nothing left to do. An
-- event that comes later sets them back.
ALTER TABLE tasks ADD COLUMN dropped_at BIGINT; -- when its texts were dropped
ALTER TABLE tasks ADD COLUMN texts_gone BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN blobs_gone BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN orphans_gone BIGINT NOT NULL DEFAULT 0; -- blobs that nothing refers to
CREATE INDEX tasks_texts ON tasks (ended_at, id) WHERE ended_at IS NOT NULL AND texts_gone = 0;
CREATE INDEX tasks_blobs ON tasks (ended_at, id) WHERE ended_at IS NOT NULL AND blobs_gone = 0;
CREATE INDEX tasks_orphans ON tasks (ended_at, id) WHERE ended_at IS NOT NULL AND orphans_gone = 0;

-- The task that a blob belongs to. Ids of blobs carry their delegation's.
ALTER TABLE blobs ADD COLUMN task_id TEXT NOT NULL DEFAULT '';
UPDATE blobs SET task_id = coalesce((SELECT d.task_id FROM delegations d WHERE d.id = substr(blobs.id, instr(blobs.id, 'dlg_'), 30)), '') WHERE instr(blobs.id, 'dlg_') > 0;
CREATE INDEX blobs_task ON blobs (task_id);
CREATE INDEX deliveries_task ON deliveries (task_id) WHERE task_id <> '';

-- What nothing may be removed of. kind: task, repository or everything. subject: the task's id or the repository's name.
CREATE TABLE holds (
  id          TEXT NOT NULL PRIMARY KEY,
  kind        TEXT NOT NULL,
  subject     TEXT NOT NULL,
  request_id  TEXT NOT NULL, -- that the task was held for, '' for none
  reason      TEXT NOT NULL,
  set_by      TEXT NOT NULL,
  set_at      BIGINT NOT NULL,
  lifted_by   TEXT NOT NULL DEFAULT '',
  lifted_at   BIGINT,
  lift_reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX holds_standing ON holds (kind, subject) WHERE lifted_at IS NULL;

-- The public keys of the nodes that seal.
CREATE TABLE seal_keys (
  id     TEXT NOT NULL PRIMARY KEY, -- the first 16 hex digits of its SHA-256
  key    BLOB NOT NULL,
  node   TEXT NOT NULL,
  at     BIGINT NOT NULL
);

-- What verifying the history found, each time. pos: it covers the order up to here.
CREATE TABLE verifications (
  id       TEXT NOT NULL PRIMARY KEY,
  who      TEXT NOT NULL,
  at       BIGINT NOT NULL,
  took     BIGINT NOT NULL, -- microseconds
  pos      BIGINT NOT NULL,
  tasks    BIGINT NOT NULL,
  seals    BIGINT NOT NULL,
  problems TEXT NOT NULL -- JSON; [] when all fits
);

-- Events stay as they are, but for one thing: the data of an ended task that no hold covers
-- may be replaced, once, by its SHA-256 and the time. The hash covers that, so the history
-- still verifies; a wrong digest does not.
DROP TRIGGER events_no_update;
-- +goose StatementBegin
CREATE TRIGGER events_no_update BEFORE UPDATE ON events WHEN NOT (
  new.pos = old.pos AND new.task_id = old.task_id AND new.n = old.n AND new.id = old.id AND new.type = old.type AND new.delegation_id = old.delegation_id
  AND new.actor = old.actor AND new.at = old.at AND new.prev_hash = old.prev_hash AND new.hash = old.hash AND old.data NOT GLOB '"dropped sha256:*'
  AND length(new.data) = 98 AND substr(new.data, 1, 16) = '"dropped sha256:' AND substr(new.data, 17, 64) NOT GLOB '*[^0-9a-f]*'
  AND substr(new.data, 81, 1) = ' ' AND substr(new.data, 82, 16) NOT GLOB '*[^0-9]*' AND substr(new.data, 98) = '"'
  AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = old.task_id AND t.ended_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.lifted_at IS NULL AND (h.kind = 'everything' OR h.kind = 'task' AND h.subject = old.task_id)))
BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;
-- +goose StatementEnd

-- A text is replaced when it is dropped. What was indexed must not stay in the index's pages either.
-- +goose StatementBegin
CREATE TRIGGER delegations_fts_update AFTER UPDATE OF text ON delegations BEGIN
  INSERT INTO delegations_fts (delegations_fts, rowid, text) VALUES ('delete', old.row, old.text);
  INSERT INTO delegations_fts (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd
INSERT INTO delegations_fts (delegations_fts, rank) VALUES ('secure-delete', 1);

-- +goose Down
INSERT INTO delegations_fts (delegations_fts, rank) VALUES ('secure-delete', 0);
DROP TRIGGER delegations_fts_update;
DROP TRIGGER events_no_update;
-- +goose StatementBegin
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;
-- +goose StatementEnd
DROP TABLE verifications;
DROP TABLE seal_keys;
DROP TABLE holds;
DROP INDEX deliveries_task;
DROP INDEX blobs_task;
ALTER TABLE blobs DROP COLUMN task_id;
DROP INDEX tasks_orphans;
DROP INDEX tasks_blobs;
DROP INDEX tasks_texts;
ALTER TABLE tasks DROP COLUMN orphans_gone;
ALTER TABLE tasks DROP COLUMN blobs_gone;
ALTER TABLE tasks DROP COLUMN texts_gone;
ALTER TABLE tasks DROP COLUMN dropped_at;
