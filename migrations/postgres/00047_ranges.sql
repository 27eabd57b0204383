-- +goose Up
-- Places in the order of events are given to the events of a step at once: pos is that of
-- event n, and the ones before it belong to those before n, so many in all.
ALTER TABLE event_order ADD COLUMN length INTEGER NOT NULL DEFAULT 1;
-- Nodes of before read one event a row. While one of them works, the rows are such.
ALTER TABLE nodes ADD COLUMN ranges BIGINT NOT NULL DEFAULT 0; -- 1: it reads rows of several

-- +goose Down
INSERT INTO event_order (pos, task_id, n)
  SELECT o.pos - before, o.task_id, o.n - before FROM event_order o CROSS JOIN LATERAL generate_series(1, o.length - 1) AS before;
ALTER TABLE event_order DROP COLUMN length;
ALTER TABLE nodes DROP COLUMN ranges;
