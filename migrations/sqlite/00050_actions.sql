-- +goose Up
-- A request may ask whether a call of a tool may be made: a revision has the input that it
-- would be made with, and a yes may be for the rest of the task, which is a grant.
ALTER TABLE revisions ADD COLUMN input TEXT NOT NULL DEFAULT '';
ALTER TABLE decisions ADD COLUMN for_task BIGINT NOT NULL DEFAULT 0;
-- What a button under a card stands for beside its verdict: a yes for the rest of the task, or
-- a choice of a question, by its number from 1.
ALTER TABLE telegram_buttons ADD COLUMN for_task BIGINT NOT NULL DEFAULT 0;
ALTER TABLE telegram_buttons ADD COLUMN choice BIGINT NOT NULL DEFAULT 0;
CREATE TABLE grants (
  id         TEXT NOT NULL PRIMARY KEY,
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  agent      TEXT NOT NULL,
  scope      TEXT NOT NULL, -- JSON: what it covers
  request_id TEXT NOT NULL,
  given_by   TEXT NOT NULL, -- JSON: everybody whose yes it was
  uses       BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at    BIGINT,
  revoked_at BIGINT,
  revoked_by TEXT NOT NULL
);
CREATE INDEX grants_task ON grants (task_id, id);

-- +goose Down
DROP TABLE grants;
ALTER TABLE telegram_buttons DROP COLUMN choice;
ALTER TABLE telegram_buttons DROP COLUMN for_task;
ALTER TABLE decisions DROP COLUMN for_task;
ALTER TABLE revisions DROP COLUMN input;
