-- +goose Up
-- Lists under a name, as people want to see them again.
CREATE TABLE saved_views (
  id       TEXT NOT NULL PRIMARY KEY,
  user_id  TEXT NOT NULL REFERENCES users (id),
  name     TEXT NOT NULL,
  name_key TEXT NOT NULL, -- in lower case: a person has each name once
  list     TEXT NOT NULL,
  line     TEXT NOT NULL,
  columns  TEXT NOT NULL, -- JSON
  shared   BIGINT NOT NULL DEFAULT 0,
  at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX saved_views_name ON saved_views (user_id, list, name_key);
CREATE INDEX saved_views_shared ON saved_views (name_key) WHERE shared = 1;

-- +goose Down
DROP TABLE saved_views;
