-- +goose Up
-- Which content a person has approved at which path of a repository: written with the
-- landing, and kept whatever retention removes. What is moved or copied to a path where it
-- is not in here is shown as content that nobody approved there.
CREATE TABLE approved_contents (
  repository TEXT NOT NULL,
  path       TEXT NOT NULL,
  blob       TEXT NOT NULL,
  PRIMARY KEY (repository, path, blob)
);

-- +goose Down
DROP TABLE approved_contents;
