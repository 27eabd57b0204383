-- +goose Up
ALTER TABLE tasks ADD COLUMN budget TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN fork_of TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN remote_hops BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN paused_at BIGINT;

ALTER TABLE delegations ADD COLUMN spawned BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE delegations ADD COLUMN open_spawned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE delegations ADD COLUMN taken BOOLEAN NOT NULL DEFAULT FALSE; -- a turn of the caller has carried its outcome
ALTER TABLE delegations ADD COLUMN context_hash TEXT NOT NULL DEFAULT '';

-- A conversation with a model, message by message.
CREATE TABLE turns (
  delegation_id TEXT COLLATE "C" NOT NULL REFERENCES delegations (id),
  generation    BIGINT NOT NULL,
  n             BIGINT NOT NULL,
  task_id       TEXT COLLATE "C" NOT NULL,
  agent         TEXT NOT NULL,
  message       TEXT NOT NULL,
  model         TEXT NOT NULL,
  stop          TEXT NOT NULL,
  input_tokens  BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  usd_micros    BIGINT,
  children      TEXT NOT NULL,
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
ALTER TABLE delegations DROP COLUMN context_hash;
ALTER TABLE delegations DROP COLUMN taken;
ALTER TABLE delegations DROP COLUMN open_spawned;
ALTER TABLE delegations DROP COLUMN spawned;
ALTER TABLE tasks DROP COLUMN paused_at;
ALTER TABLE tasks DROP COLUMN remote_hops;
ALTER TABLE tasks DROP COLUMN fork_of;
ALTER TABLE tasks DROP COLUMN budget;
