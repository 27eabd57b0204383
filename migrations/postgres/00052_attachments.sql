-- +goose Up
-- The files that came with a task: a JSON list of names, types, sizes and digests, '' for none.
-- Their contents are blobs of the task.
ALTER TABLE tasks ADD COLUMN attachments TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tasks DROP COLUMN attachments;
