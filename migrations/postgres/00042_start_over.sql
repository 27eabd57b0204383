-- +goose Up
-- Whether a wish for changes has the agent start over from the base. 0 for decisions of
-- before, of which only their event says it.
ALTER TABLE decisions ADD COLUMN start_over BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE decisions DROP COLUMN start_over;
