-- +goose Up
-- The configuration that was recorded last, in one row: what its change is compared with.
-- No secret is in it.
CREATE TABLE configuration (
  id          BIGINT NOT NULL PRIMARY KEY,
  digest      TEXT   NOT NULL,
  settings    TEXT   NOT NULL, -- JSON: [{"key":…,"value":…}]
  recorded_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE configuration;
