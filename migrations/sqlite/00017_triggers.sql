-- +goose Up
-- What triggers took in: calls of webhooks and times of schedules, stored before a task is made of them.
-- due_at: when it is looked at again, and until when whoever looks at it has it to itself.
CREATE TABLE deliveries (
  id          TEXT NOT NULL PRIMARY KEY,
  name        TEXT NOT NULL,
  kind        TEXT NOT NULL,
  source      TEXT NOT NULL,
  external_id TEXT NOT NULL,
  body_hash   TEXT NOT NULL,
  event       TEXT NOT NULL,
  headers     TEXT NOT NULL,
  body        BLOB,
  state       TEXT NOT NULL,
  code        TEXT NOT NULL DEFAULT '',
  message     TEXT NOT NULL DEFAULT '',
  text        TEXT NOT NULL DEFAULT '',
  task_id     TEXT NOT NULL DEFAULT '',
  of_id       TEXT NOT NULL DEFAULT '',
  by_name     TEXT NOT NULL DEFAULT '',
  by_id       TEXT NOT NULL DEFAULT '',
  attempts    BIGINT NOT NULL DEFAULT 0,
  repeats     BIGINT NOT NULL DEFAULT 0,
  received_at BIGINT NOT NULL,
  due_at      BIGINT NOT NULL,
  done_at     BIGINT
);
CREATE INDEX deliveries_trigger ON deliveries (name, id);
CREATE INDEX deliveries_state ON deliveries (name, state, id);
CREATE INDEX deliveries_ending ON deliveries (substr(id, -6));
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state = 'stored';
CREATE INDEX deliveries_bodies ON deliveries (received_at) WHERE body IS NOT NULL;

-- What makes a delivery the same as another: the sender's id ("id:…"), or the body ("body:…").
CREATE TABLE delivery_keys (
  name        TEXT NOT NULL,
  key         TEXT NOT NULL,
  delivery_id TEXT NOT NULL,
  at          BIGINT NOT NULL,
  PRIMARY KEY (name, key)
);
CREATE INDEX delivery_keys_at ON delivery_keys (at);

-- Up to when the times of a schedule have been looked at.
CREATE TABLE schedule_times (
  name TEXT NOT NULL PRIMARY KEY,
  at   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE schedule_times;
DROP TABLE delivery_keys;
DROP TABLE deliveries;
