-- +goose Up
-- How far each person has read each revision: when the page was first drawn for them, and
-- which files they marked as viewed, by number. Decisions take both from here.
CREATE TABLE readings (
  user_id    TEXT NOT NULL REFERENCES users (id),
  request_id TEXT NOT NULL REFERENCES requests (id),
  revision   BIGINT NOT NULL,
  opened_at  BIGINT NOT NULL,
  PRIMARY KEY (user_id, request_id, revision)
);
CREATE INDEX readings_request ON readings (request_id);
CREATE INDEX readings_opened ON readings (opened_at);
CREATE TABLE viewed_files (
  user_id    TEXT NOT NULL,
  request_id TEXT NOT NULL,
  revision   BIGINT NOT NULL,
  file       BIGINT NOT NULL,
  PRIMARY KEY (user_id, request_id, revision, file),
  FOREIGN KEY (user_id, request_id, revision) REFERENCES readings (user_id, request_id, revision) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE viewed_files;
DROP TABLE readings;
