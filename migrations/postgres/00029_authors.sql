-- +goose Up
-- The agents that worked on a revision's tree, with what each was confined by, as JSON; ''
-- for revisions of before, on which only the request's own agent is known to have worked.
ALTER TABLE revisions ADD COLUMN authors TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE revisions DROP COLUMN authors;
