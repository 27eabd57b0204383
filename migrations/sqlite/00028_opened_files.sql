-- +goose Up
-- Which files of a revision were before each person on its page, to the end. It is apart
-- from what they marked as viewed; decisions take both from here.
CREATE TABLE opened_files (
  user_id    TEXT NOT NULL,
  request_id TEXT NOT NULL,
  revision   BIGINT NOT NULL,
  file       BIGINT NOT NULL,
  PRIMARY KEY (user_id, request_id, revision, file),
  FOREIGN KEY (user_id, request_id, revision) REFERENCES readings (user_id, request_id, revision) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE opened_files;
