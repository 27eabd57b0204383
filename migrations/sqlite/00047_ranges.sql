-- +goose Up
-- As PostgreSQL has it, where one row gives places to several events.
DROP VIEW event_order;
CREATE VIEW event_order AS SELECT pos, task_id, n, 1 AS length FROM events;
ALTER TABLE nodes ADD COLUMN ranges BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE nodes DROP COLUMN ranges;
DROP VIEW event_order;
CREATE VIEW event_order AS SELECT pos, task_id, n FROM events;
