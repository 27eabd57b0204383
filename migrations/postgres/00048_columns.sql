-- +goose Up
-- A change of a row writes to the log what lies between the first and the last column that
-- change. So what is fixed when a delegation is made stands first, and what every step
-- changes stands together at the end.
LOCK TABLE tasks, delegations, turns IN ACCESS EXCLUSIVE MODE; -- in the order of a step
CREATE TABLE delegations_anew (
  id            TEXT COLLATE "C" NOT NULL,
  task_id       TEXT COLLATE "C" NOT NULL,
  seq           BIGINT NOT NULL,
  parent_id     TEXT COLLATE "C" NOT NULL,
  from_agent    TEXT NOT NULL,
  to_agent      TEXT NOT NULL,
  text          TEXT NOT NULL,
  depth         BIGINT NOT NULL,
  chain         TEXT NOT NULL,
  hop_key       TEXT NOT NULL,
  generation    BIGINT NOT NULL,
  repository    TEXT NOT NULL,
  requester     TEXT NOT NULL,
  context_hash  TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL,
  made_at       BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT,
  spawned       BOOLEAN NOT NULL DEFAULT FALSE,
  taken         BOOLEAN NOT NULL DEFAULT FALSE,
  approval_id   TEXT COLLATE "C" NOT NULL,
  input_tokens  BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  usd_micros    BIGINT,
  losses        BIGINT NOT NULL,
  open_spawned  BIGINT NOT NULL DEFAULT 0,
  ready_at      BIGINT NOT NULL,
  started_at    BIGINT,
  attempt       BIGINT NOT NULL,
  open_children BIGINT NOT NULL,
  token_hash    TEXT NOT NULL,
  holder        TEXT NOT NULL,
  lease_until   BIGINT NOT NULL,
  since         BIGINT NOT NULL,
  state         TEXT NOT NULL,
  work          TEXT NOT NULL,
  ended_at      BIGINT,
  result        TEXT,
  error         TEXT
) WITH (fillfactor = 70);
INSERT INTO delegations_anew (id, task_id, seq, parent_id, from_agent, to_agent, text, depth, chain, hop_key, generation, repository, requester,
    context_hash, created_at, made_at, spawned, taken, approval_id, input_tokens, output_tokens, usd_micros, losses, open_spawned, ready_at,
    started_at, attempt, open_children, token_hash, holder, lease_until, since, state, work, ended_at, result, error)
  SELECT id, task_id, seq, parent_id, from_agent, to_agent, text, depth, chain, hop_key, generation, repository, requester,
    context_hash, created_at, made_at, spawned, taken, approval_id, input_tokens, output_tokens, usd_micros, losses, open_spawned, ready_at,
    started_at, attempt, open_children, token_hash, holder, lease_until, since, state, work, ended_at, result, error
  FROM delegations ORDER BY id;
ALTER TABLE turns DROP CONSTRAINT turns_delegation_id_fkey;
DROP TABLE delegations;
ALTER TABLE delegations_anew RENAME TO delegations;
ALTER TABLE delegations ADD CONSTRAINT delegations_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX delegations_task ON delegations (task_id, seq);
CREATE UNIQUE INDEX delegations_hop ON delegations (parent_id, generation, hop_key) WHERE parent_id <> '';
CREATE INDEX delegations_ready ON delegations (ready_at) WHERE holder = '' AND state IN ('queued', 'checking', 'landing');
CREATE INDEX delegations_held ON delegations (lease_until) WHERE holder <> '';
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL; -- roots, too: all that lives
CREATE INDEX delegations_landing ON delegations (repository) WHERE state = 'landing';
CREATE INDEX delegations_token ON delegations USING hash (token_hash) WHERE token_hash <> '';
ALTER TABLE delegations ADD CONSTRAINT delegations_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks (id);
ALTER TABLE turns ADD CONSTRAINT turns_delegation_id_fkey FOREIGN KEY (delegation_id) REFERENCES delegations (id);
CREATE TRIGGER delegations_counted AFTER UPDATE OF state, text, taken ON delegations FOR EACH ROW
  WHEN (current_setting('gatehouse.counts_versions', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION delegations_count_version();
CREATE TRIGGER delegations_words_dropped AFTER UPDATE OF text ON delegations FOR EACH ROW EXECUTE FUNCTION delegations_list_words();
ANALYZE delegations;

-- A trigger before a change locks each row first, and writes that to the log, also where it
-- has nothing to do. One after it does not. What it writes itself it need not count.
DROP TRIGGER tasks_counted ON tasks;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tasks_count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE tasks SET version = version + 1 WHERE id = NEW.id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tasks_counted AFTER UPDATE ON tasks FOR EACH ROW
  WHEN (pg_trigger_depth() = 0 AND current_setting('gatehouse.counts_versions', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION tasks_count_version();

-- +goose Down
DROP TRIGGER tasks_counted ON tasks;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tasks_count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tasks_counted BEFORE UPDATE ON tasks FOR EACH ROW
  WHEN (current_setting('gatehouse.counts_versions', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION tasks_count_version();
