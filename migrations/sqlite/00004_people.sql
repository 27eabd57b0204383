-- +goose Up
CREATE TABLE users (
  id            TEXT NOT NULL PRIMARY KEY,
  name          TEXT NOT NULL,
  name_key      TEXT NOT NULL UNIQUE, -- the name in lower case: Ann and ann are one
  roles         TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  disabled      BIGINT NOT NULL DEFAULT 0,
  created_at    BIGINT NOT NULL
);

CREATE TABLE sessions (
  hash       TEXT NOT NULL PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expires ON sessions (expires_at);

CREATE TABLE signin_links (
  hash       TEXT NOT NULL PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  expires_at BIGINT NOT NULL,
  used_at    BIGINT
);
CREATE INDEX signin_links_expires ON signin_links (expires_at);

CREATE TABLE tokens (
  id           TEXT NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL REFERENCES users (id),
  name         TEXT NOT NULL,
  scopes       TEXT NOT NULL,
  hash         TEXT NOT NULL UNIQUE,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT,
  revoked_at   BIGINT,
  last_used_at BIGINT
);
CREATE INDEX tokens_user ON tokens (user_id);

-- +goose Down
DROP TABLE tokens;
DROP TABLE signin_links;
DROP TABLE sessions;
DROP TABLE users;
