-- +goose Up
-- What somebody outside is told of a task: kind live is one message that is edited as the task
-- goes on, kind end is sent when it has ended. shown: the number of the task's event that it
-- shows. open: there may be more to tell. holder: the node that delivers it just now.
CREATE TABLE reports (
  task_id     TEXT NOT NULL REFERENCES tasks (id),
  channel     TEXT NOT NULL,
  address     TEXT NOT NULL,
  kind        TEXT NOT NULL,
  answers     BIGINT NOT NULL DEFAULT 0, -- the message that it is an answer to, 0 for none
  external_id TEXT NOT NULL DEFAULT '',
  shown       BIGINT NOT NULL DEFAULT 0,
  due_at      BIGINT NOT NULL,
  attempts    BIGINT NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT '',
  dead        BIGINT NOT NULL DEFAULT 0,
  open        BIGINT NOT NULL DEFAULT 1,
  holder      TEXT NOT NULL DEFAULT '',
  sent_at     BIGINT,
  PRIMARY KEY (task_id, channel, address)
);
CREATE INDEX reports_due ON reports (channel, due_at) WHERE open = 1 AND dead = 0;
CREATE INDEX reports_dead ON reports (channel) WHERE dead = 1;
CREATE INDEX reports_held ON reports (holder) WHERE holder <> '';
-- A person who does not want the messages of their tasks to go on.
ALTER TABLE users ADD COLUMN muted BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE users DROP COLUMN muted;
DROP TABLE reports;
