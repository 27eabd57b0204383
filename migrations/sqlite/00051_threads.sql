-- +goose Up
-- The task that began the thread of a follow-up; '' for one that begins a thread, or is none.
-- The newest of each thread, and all of one, are walks along an index.
ALTER TABLE tasks ADD COLUMN thread TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_thread ON tasks (thread, requester_id, root_id) WHERE thread <> '';
CREATE INDEX tasks_threads ON tasks (requester_id, root_id) WHERE via = 'chat' OR thread <> '';
-- The message about a task finds the task, for whoever replies to it.
CREATE INDEX reports_address ON reports (channel, address, task_id);

-- +goose Down
DROP INDEX reports_address;
DROP INDEX tasks_threads;
DROP INDEX tasks_thread;
ALTER TABLE tasks DROP COLUMN thread;
