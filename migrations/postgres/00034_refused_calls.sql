-- +goose Up
-- Calls of webhooks that were answered 401, by trigger. Of the last one it says when it came,
-- what was wrong with it and from which address; nothing else of such a call is kept.
CREATE TABLE refused_calls (
  name    TEXT NOT NULL PRIMARY KEY,
  calls   BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  reason  TEXT NOT NULL,
  address TEXT NOT NULL
);

-- +goose Down
DROP TABLE refused_calls;
