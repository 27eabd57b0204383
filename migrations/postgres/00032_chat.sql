-- +goose Up
-- The chat that a task was sent from, as its channel names it: a Telegram chat, a person's
-- own chat on the page. '' where the channel has none, and for tasks of before.
ALTER TABLE tasks ADD COLUMN chat TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tasks DROP COLUMN chat;
