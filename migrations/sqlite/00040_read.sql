-- +goose Up
-- That the branch changed under a revision so that a yes to it lands nothing, as JSON:
-- branch, head, files, why; '' where that is not known.
ALTER TABLE revisions ADD COLUMN overtaken TEXT NOT NULL DEFAULT '';
-- Where each person had the whole of a revision before them, beside its page. Decisions
-- take it from here.
CREATE TABLE read_whole (
  user_id    TEXT NOT NULL REFERENCES users (id),
  request_id TEXT NOT NULL REFERENCES requests (id),
  revision   BIGINT NOT NULL,
  surface    TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (user_id, request_id, revision, surface)
);
CREATE INDEX read_whole_request ON read_whole (request_id);
CREATE INDEX read_whole_at ON read_whole (at);

-- +goose Down
DROP TABLE read_whole;
ALTER TABLE revisions DROP COLUMN overtaken;
