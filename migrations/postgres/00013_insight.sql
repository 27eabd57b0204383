-- +goose Up
-- What the log says in sums, a row for each day, measure and bucket; day -1 is all time,
-- without repositories. See package insight for the measures.
CREATE TABLE insight (
  day        BIGINT NOT NULL, -- since 1970, UTC
  measure    TEXT COLLATE "C" NOT NULL,
  agent      TEXT COLLATE "C" NOT NULL,
  model      TEXT COLLATE "C" NOT NULL,
  repository TEXT COLLATE "C" NOT NULL,
  code       TEXT COLLATE "C" NOT NULL,
  bucket     BIGINT NOT NULL,
  n          BIGINT NOT NULL,
  total      BIGINT NOT NULL,
  PRIMARY KEY (day, measure, agent, model, repository, code, bucket)
);
-- What live delegations waited for when the last batch was counted.
CREATE TABLE insight_open (
  delegation_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  kind          TEXT NOT NULL,
  since         BIGINT NOT NULL,
  taken         BIGINT NOT NULL
);
-- How far a reader of the log has come in the order over all tasks.
CREATE TABLE cursors (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  pos  BIGINT NOT NULL,
  at   BIGINT NOT NULL -- of the event there
);
CREATE INDEX events_breakers ON events (at) WHERE type IN ('breaker.opened', 'breaker.closed');
-- The live ones below a delegation, however many ended before.
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL AND parent_id <> '';

-- +goose Down
DROP INDEX delegations_open;
DROP INDEX events_breakers;
DROP TABLE cursors;
DROP TABLE insight_open;
DROP TABLE insight;
