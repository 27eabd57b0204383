-- +goose Up
-- delegations_open has the same rows by the same key, and each move of a row writes both.
DROP INDEX delegations_below;

-- +goose Down
CREATE INDEX delegations_below ON delegations (parent_id) WHERE parent_id <> '' AND ended_at IS NULL;
