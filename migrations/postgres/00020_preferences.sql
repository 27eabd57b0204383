-- +goose Up
-- The time zone that a person reads times in, '' for that of their browser; and what a
-- session's browser calls itself, so that people know their own again.
ALTER TABLE users ADD COLUMN zone TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN client TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN client;
ALTER TABLE users DROP COLUMN zone;
