-- +goose Up
-- A request asks about a patch, or about a hand-over; then question says what.
ALTER TABLE requests ADD COLUMN kind TEXT NOT NULL DEFAULT 'patch';
ALTER TABLE requests ADD COLUMN question TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE requests DROP COLUMN question;
ALTER TABLE requests DROP COLUMN kind;
