-- +goose Up
-- What lists, searches and sums read of delegations: written by one follower of the log and
-- not by the steps, whose rows keep the indexes that the engine reads. Its place in the order
-- of events stands in cursors. "row" is the one of delegations, for full-text search.
CREATE TABLE listing (
  row         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL,
  task_id     TEXT NOT NULL,
  parent_id   TEXT NOT NULL,
  to_agent    TEXT NOT NULL,
  state       TEXT NOT NULL,
  repository  TEXT NOT NULL,
  requester   TEXT NOT NULL,
  usd_micros  BIGINT, -- of a root: what all below it has cost
  approval_id TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  ended_at    BIGINT
);
INSERT INTO cursors (name, pos, at) SELECT 'listing', coalesce(max(pos), 0), 0 FROM events;
INSERT INTO listing (row, id, task_id, parent_id, to_agent, state, repository, requester, usd_micros, approval_id, created_at, ended_at)
  SELECT row, id, task_id, parent_id, to_agent, state, repository, requester, CASE WHEN parent_id = '' THEN usd_micros END, approval_id, created_at, ended_at
  FROM delegations ORDER BY row;

CREATE UNIQUE INDEX listing_id ON listing (id);
-- What each agent is doing, and how its last one ended.
CREATE INDEX listing_live ON listing (to_agent, state) WHERE ended_at IS NULL;
CREATE INDEX listing_ended ON listing (to_agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX listing_state ON listing (state, id);
CREATE INDEX listing_agent ON listing (to_agent, id);
CREATE INDEX listing_requester ON listing (requester, id) WHERE requester <> '';
CREATE INDEX listing_repository ON listing (repository, id) WHERE repository <> '';
CREATE INDEX listing_roots ON listing (id) WHERE parent_id = '';
CREATE INDEX listing_ending ON listing (substr(id, -6));
CREATE INDEX listing_cost ON listing (usd_micros, task_id) WHERE parent_id = '' AND usd_micros IS NOT NULL;
CREATE INDEX listing_wrong ON listing (state, ended_at) WHERE state IN ('failed', 'rejected', 'expired') AND parent_id = '';
CREATE INDEX listing_approved ON listing (state, ended_at) WHERE approval_id <> '' AND ended_at IS NOT NULL;

-- The words of a text are indexed with its row here. One that is dropped leaves none behind.
DROP TRIGGER delegations_fts_insert;
DROP TRIGGER delegations_fts_delete;
DROP TRIGGER delegations_fts_update;
-- +goose StatementBegin
CREATE TRIGGER listing_insert AFTER INSERT ON listing BEGIN
  INSERT INTO delegations_fts (rowid, text) SELECT row, text FROM delegations WHERE row = new.row;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER listing_delete AFTER DELETE ON listing BEGIN
  INSERT INTO delegations_fts (delegations_fts, rowid, text) SELECT 'delete', row, text FROM delegations WHERE row = old.row;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER delegations_fts_update AFTER UPDATE OF text ON delegations WHEN EXISTS (SELECT 1 FROM listing WHERE row = old.row) BEGIN
  INSERT INTO delegations_fts (delegations_fts, rowid, text) VALUES ('delete', old.row, old.text);
  INSERT INTO delegations_fts (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd

DROP INDEX delegations_live;
DROP INDEX delegations_ended;
DROP INDEX delegations_state;
DROP INDEX delegations_agent;
DROP INDEX delegations_requester;
DROP INDEX delegations_repository;
DROP INDEX delegations_roots;
DROP INDEX delegations_ending;
DROP INDEX delegations_cost;
DROP INDEX delegations_wrong;
DROP INDEX delegations_approved;
DROP INDEX delegations_open;
DROP INDEX delegations_untaken; -- delegations_hop begins with the same columns
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL; -- roots, too: all that lives
CREATE INDEX delegations_landing ON delegations (repository) WHERE state = 'landing';

-- +goose Down
DROP INDEX delegations_landing;
DROP INDEX delegations_open;
CREATE INDEX delegations_untaken ON delegations (parent_id, generation) WHERE parent_id <> '' AND NOT taken;
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL AND parent_id <> '';
CREATE INDEX delegations_live ON delegations (to_agent, state) WHERE ended_at IS NULL;
CREATE INDEX delegations_ended ON delegations (to_agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delegations_state ON delegations (state, id);
CREATE INDEX delegations_agent ON delegations (to_agent, id);
CREATE INDEX delegations_requester ON delegations (requester, id) WHERE requester <> '';
CREATE INDEX delegations_repository ON delegations (repository, id) WHERE repository <> '';
CREATE INDEX delegations_roots ON delegations (id) WHERE parent_id = '';
CREATE INDEX delegations_ending ON delegations (substr(id, -6));
CREATE INDEX delegations_cost ON delegations (usd_micros, task_id) WHERE parent_id = '' AND usd_micros IS NOT NULL;
CREATE INDEX delegations_wrong ON delegations (state, ended_at) WHERE state IN ('failed', 'rejected', 'expired') AND parent_id = '';
CREATE INDEX delegations_approved ON delegations (state, ended_at) WHERE approval_id <> '' AND ended_at IS NOT NULL;
DROP TRIGGER delegations_fts_update;
DROP TABLE listing; -- with its triggers; what it had not listed yet is indexed anew
DELETE FROM cursors WHERE name = 'listing';
INSERT INTO delegations_fts (delegations_fts) VALUES ('rebuild');
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
-- +goose StatementBegin
CREATE TRIGGER delegations_fts_update AFTER UPDATE OF text ON delegations BEGIN
  INSERT INTO delegations_fts (delegations_fts, rowid, text) VALUES ('delete', old.row, old.text);
  INSERT INTO delegations_fts (rowid, text) VALUES (new.row, new.text);
END;
-- +goose StatementEnd
