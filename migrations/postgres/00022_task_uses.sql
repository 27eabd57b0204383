-- +goose Up
-- What a task read and wrote of the shared context, for its page.
CREATE INDEX context_uses_task ON context_uses (task_id, n);

-- +goose Down
DROP INDEX context_uses_task;
