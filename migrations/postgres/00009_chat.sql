-- +goose Up
-- A person's own conversation, newest first: root ids are in the order of time.
CREATE INDEX tasks_chat ON tasks (requester_id, root_id) WHERE via = 'chat';

-- +goose Down
DROP INDEX tasks_chat;
