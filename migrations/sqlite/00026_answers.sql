-- +goose Up
-- What people said under line comments that were sent, and which of those are done. n
-- counts within the request; thread is the decision's id, a dot, and the comment's number.
CREATE TABLE answers (
  request_id TEXT NOT NULL REFERENCES requests (id),
  n          BIGINT NOT NULL,
  thread     TEXT NOT NULL,
  act        TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  user_name  TEXT NOT NULL,
  channel    TEXT NOT NULL,
  text       TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (request_id, n)
);

-- +goose Down
DROP TABLE answers;
