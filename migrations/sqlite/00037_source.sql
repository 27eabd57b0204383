-- +goose Up
-- What a task is about elsewhere, as JSON: kind, ref, url and title of an issue, a merge
-- request, a chat. '' where nobody said, and for tasks of before.
ALTER TABLE tasks ADD COLUMN source TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tasks DROP COLUMN source;
