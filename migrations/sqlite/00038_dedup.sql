-- +goose Up
-- What must not be done twice: a spawn that a run asks for again, and the announcement of a
-- spawned child's end. A row lives as long as the child, and for a while after its end.
CREATE TABLE dedup (
  dedup_key     TEXT   NOT NULL PRIMARY KEY,
  delegation_id TEXT   NOT NULL, -- the child
  made_at       BIGINT NOT NULL
);
CREATE INDEX dedup_made ON dedup (made_at);
INSERT INTO dedup (dedup_key, delegation_id, made_at)
  SELECT 'spawn/' || parent_id || '/' || generation || '/' || hop_key, id, created_at FROM delegations
  WHERE parent_id <> '' AND spawned AND task_id IN (SELECT id FROM tasks WHERE ended_at IS NULL);

-- +goose Down
DROP TABLE dedup;
