-- +goose Up
-- A step on a task reads without locks and writes once: the write holds only where nobody
-- has written since, which this count tells.
ALTER TABLE tasks ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
-- Every step updates its task's row; with room on the page no index is touched by it.
ALTER TABLE tasks SET (fillfactor = 70);

-- Programs from before this one count no versions, and may work beside newer ones while the
-- nodes are brought up one by one. For every connection that does not say that it counts,
-- as theirs and an administrator's, these triggers do.
-- +goose StatementBegin
CREATE FUNCTION tasks_count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tasks_counted BEFORE UPDATE ON tasks FOR EACH ROW
  WHEN (current_setting('gatehouse.counts_versions', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION tasks_count_version();
-- +goose StatementBegin
CREATE FUNCTION delegations_count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE tasks SET version = version + 1 WHERE id = NEW.task_id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- Leases are renewed without the task's row, and without a version.
CREATE TRIGGER delegations_counted AFTER UPDATE OF state, text, taken ON delegations FOR EACH ROW
  WHEN (current_setting('gatehouse.counts_versions', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION delegations_count_version();

-- +goose Down
DROP TRIGGER delegations_counted ON delegations;
DROP TRIGGER tasks_counted ON tasks;
DROP FUNCTION delegations_count_version();
DROP FUNCTION tasks_count_version();
ALTER TABLE tasks RESET (fillfactor);
ALTER TABLE tasks DROP COLUMN version;
