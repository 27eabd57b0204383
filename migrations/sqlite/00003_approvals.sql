-- +goose Up
CREATE TABLE requests (
  id            TEXT NOT NULL PRIMARY KEY,
  task_id       TEXT NOT NULL REFERENCES tasks (id),
  delegation_id TEXT NOT NULL,
  state         TEXT NOT NULL,
  version       BIGINT NOT NULL,
  agent         TEXT NOT NULL,
  title         TEXT NOT NULL,
  repository    TEXT NOT NULL,
  requester_id  TEXT NOT NULL,
  requester     TEXT NOT NULL,
  via           TEXT NOT NULL,
  chain         TEXT NOT NULL,
  rule          TEXT NOT NULL,
  landed        TEXT NOT NULL,
  revert_of     TEXT NOT NULL,
  reverted_by   TEXT NOT NULL,
  expires_at    BIGINT,
  created_at    BIGINT NOT NULL,
  decided_at    BIGINT,
  revision      BIGINT NOT NULL -- number of the current one
);
CREATE INDEX requests_state ON requests (state, id);
CREATE INDEX requests_task ON requests (task_id, id);
CREATE INDEX requests_delegation ON requests (delegation_id, id);
CREATE INDEX requests_agent ON requests (agent, id);
CREATE INDEX requests_repository ON requests (repository, id);
CREATE INDEX requests_overdue ON requests (expires_at) WHERE state = 'pending' AND expires_at IS NOT NULL;
CREATE INDEX requests_ending ON requests (substr(id, -6));

CREATE TABLE revisions (
  request_id  TEXT NOT NULL REFERENCES requests (id),
  n           BIGINT NOT NULL,
  state       TEXT NOT NULL,
  digest      TEXT NOT NULL,
  deliver     TEXT NOT NULL,
  base        TEXT NOT NULL,
  tree        TEXT NOT NULL,
  branch      TEXT NOT NULL,
  commit_id   TEXT NOT NULL,
  bundle      TEXT NOT NULL,
  previous    TEXT NOT NULL,
  text        TEXT NOT NULL,
  files       TEXT NOT NULL,
  added       BIGINT NOT NULL,
  removed     BIGINT NOT NULL,
  warnings    TEXT NOT NULL,
  notes       TEXT NOT NULL,
  checks      TEXT NOT NULL,
  sandbox     TEXT NOT NULL,
  at          BIGINT NOT NULL,
  PRIMARY KEY (request_id, n)
);

CREATE TABLE decisions (
  id         TEXT NOT NULL PRIMARY KEY,
  request_id TEXT NOT NULL REFERENCES requests (id),
  revision   BIGINT NOT NULL,
  user_id    TEXT NOT NULL,
  user_name  TEXT NOT NULL,
  channel    TEXT NOT NULL,
  verdict    TEXT NOT NULL,
  comment    TEXT NOT NULL,
  digest     TEXT NOT NULL,
  at         BIGINT NOT NULL,
  seen       TEXT NOT NULL
);
CREATE INDEX decisions_request ON decisions (request_id, at);

-- The outbox: a card is open while it shows an older version than its request's.
CREATE TABLE cards (
  request_id  TEXT NOT NULL REFERENCES requests (id),
  channel     TEXT NOT NULL,
  address     TEXT NOT NULL,
  external_id TEXT NOT NULL DEFAULT '',
  shown       BIGINT NOT NULL DEFAULT 0,
  due_at      BIGINT NOT NULL,
  attempts    BIGINT NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT '',
  dead        BIGINT NOT NULL DEFAULT 0,
  open        BIGINT NOT NULL DEFAULT 1,
  PRIMARY KEY (request_id, channel, address)
);
CREATE INDEX cards_due ON cards (due_at) WHERE open = 1 AND dead = 0;

-- +goose Down
DROP TABLE cards;
DROP TABLE decisions;
DROP TABLE revisions;
DROP TABLE requests;
