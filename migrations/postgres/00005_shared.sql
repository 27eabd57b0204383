-- +goose Up
CREATE TABLE agent_shared_context (
  namespace  VARCHAR(64) COLLATE "C" NOT NULL CHECK (length(namespace) BETWEEN 1 AND 64),
  key_name   VARCHAR(128) COLLATE "C" NOT NULL CHECK (length(key_name) BETWEEN 1 AND 128),
  value      TEXT NOT NULL,
  agent      VARCHAR(64) NOT NULL CHECK (length(agent) BETWEEN 1 AND 64),
  expires_at BIGINT,
  created_at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  updated_at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  PRIMARY KEY (namespace, key_name)
);
CREATE INDEX idx_namespace ON agent_shared_context (namespace);
CREATE INDEX idx_expires ON agent_shared_context (expires_at);

CREATE TABLE leases (
  name   TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  until  BIGINT NOT NULL
);

CREATE TABLE nodes (
  name    TEXT NOT NULL PRIMARY KEY,
  url     TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',
  seen    BIGINT NOT NULL
);

-- +goose Down
DROP TABLE nodes;
DROP TABLE leases;
DROP TABLE agent_shared_context;
