-- +goose Up
ALTER TABLE tasks ADD COLUMN budget TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN fork_of TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN remote_hops BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN paused_at BIGINT;

ALTER TABLE delegations ADD COLUMN spawned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delegations ADD COLUMN open_spawned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE delegations ADD COLUMN taken INTEGER NOT NULL DEFAULT 0; -- a turn of the caller has carried its outcome
ALTER TABLE delegations ADD COLUMN context_hash TEXT NOT NULL DEFAULT '';
-- The outcomes that a conversation has not carried: few, however many children there are.
CREATE INDEX delegations_untaken ON delegations (parent_id, generation) WHERE parent_id <> '' AND NOT taken;
-- The live children of one that ends.
CREATE INDEX delegations_below ON delegations (parent_id) WHERE parent_id <> '' AND ended_at IS NULL;
CREATE INDEX tasks_paused ON tasks (id) WHERE paused_at IS NOT NULL;

-- A conversation with a model, message by message.
CREATE TABLE turns (
  delegation_id TEXT NOT NULL REFERENCES delegations (id),
  generation    BIGINT NOT NULL,
  n             BIGINT NOT NULL,
  task_id       TEXT NOT NULL,
  agent         TEXT NOT NULL,
  message       TEXT NOT NULL,
  model         TEXT NOT NULL,
  stop          TEXT NOT NULL,
  input_tokens  BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  usd_micros    BIGINT,
  children      TEXT NOT NULL,
  kept          TEXT NOT NULL DEFAULT '', -- commit and tree of the checkout at that turn
  at            BIGINT NOT NULL,
  took          BIGINT NOT NULL, -- microseconds
  PRIMARY KEY (delegation_id, generation, n)
);
CREATE INDEX turns_models ON turns (at, model) WHERE model <> '';

-- One row an agent that ever failed.
CREATE TABLE breakers (
  agent     TEXT NOT NULL PRIMARY KEY,
  state     TEXT NOT NULL,
  failures  BIGINT NOT NULL,
  opened_at BIGINT,
  until     BIGINT,                  -- no probe before
  probe     TEXT NOT NULL DEFAULT '', -- who tries, while half open
  probe_until BIGINT,
  reason    TEXT NOT NULL DEFAULT '',
  changed_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE breakers;
DROP TABLE turns;
DROP INDEX tasks_paused;
DROP INDEX delegations_below;
DROP INDEX delegations_untaken;
ALTER TABLE delegations DROP COLUMN context_hash;
ALTER TABLE delegations DROP COLUMN taken;
ALTER TABLE delegations DROP COLUMN open_spawned;
ALTER TABLE delegations DROP COLUMN spawned;
ALTER TABLE tasks DROP COLUMN paused_at;
ALTER TABLE tasks DROP COLUMN remote_hops;
ALTER TABLE tasks DROP COLUMN fork_of;
ALTER TABLE tasks DROP COLUMN budget;
