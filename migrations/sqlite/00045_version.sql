-- +goose Up
-- A step on a task reads without locks and writes once: the write holds only where nobody
-- has written since, which this count tells.
ALTER TABLE tasks ADD COLUMN version BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE tasks DROP COLUMN version;
