-- +goose Up
-- What lists, searches and sums read of delegations: written by one follower of the log and
-- not by the steps, whose rows keep the indexes that the engine reads. Its place in the order
-- of events stands in cursors, and whoever writes here locks that row first.
CREATE TABLE listing (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  task_id     TEXT COLLATE "C" NOT NULL,
  parent_id   TEXT COLLATE "C" NOT NULL,
  to_agent    TEXT NOT NULL,
  state       TEXT NOT NULL,
  repository  TEXT NOT NULL,
  requester   TEXT NOT NULL,
  usd_micros  BIGINT, -- of a root: what all below it has cost
  approval_id TEXT COLLATE "C" NOT NULL,
  created_at  BIGINT NOT NULL,
  ended_at    BIGINT
);
-- The words of a text, written once: see request_texts for what is cut.
CREATE TABLE listing_words (
  id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  words TSVECTOR NOT NULL
);

-- The place is read before the rows: what happens meanwhile is listed again.
INSERT INTO cursors (name, pos, at) SELECT 'listing', coalesce(max(pos), 0), 0 FROM event_order;
INSERT INTO listing (id, task_id, parent_id, to_agent, state, repository, requester, usd_micros, approval_id, created_at, ended_at)
  SELECT id, task_id, parent_id, to_agent, state, repository, requester, CASE WHEN parent_id = '' THEN usd_micros END, approval_id, created_at, ended_at
  FROM delegations;
INSERT INTO listing_words (id, words) SELECT id, words FROM delegations;

-- What each agent is doing, and how its last one ended.
CREATE INDEX listing_live ON listing (to_agent, state) WHERE ended_at IS NULL;
CREATE INDEX listing_ended ON listing (to_agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX listing_state ON listing (state, id);
CREATE INDEX listing_agent ON listing (to_agent, id);
CREATE INDEX listing_requester ON listing (requester, id) WHERE requester <> '';
CREATE INDEX listing_repository ON listing (repository, id) WHERE repository <> '';
CREATE INDEX listing_roots ON listing (id) WHERE parent_id = '';
CREATE INDEX listing_ending ON listing (right(id, 6));
CREATE INDEX listing_cost ON listing (usd_micros, task_id) WHERE parent_id = '' AND usd_micros IS NOT NULL;
CREATE INDEX listing_wrong ON listing (state, ended_at) WHERE state IN ('failed', 'rejected', 'expired') AND parent_id = '';
CREATE INDEX listing_approved ON listing (state, ended_at) WHERE approval_id <> '' AND ended_at IS NOT NULL;
CREATE INDEX listing_words_words ON listing_words USING gin (words);
ANALYZE listing;
ANALYZE listing_words;

-- A text that is dropped leaves no word behind, whoever drops it.
-- +goose StatementBegin
CREATE FUNCTION delegations_list_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM cursors WHERE name = 'listing' FOR UPDATE;
  UPDATE listing_words SET words = to_tsvector('simple', translate(NEW.text, './\-_:@#''"`<>()[]{}=+*&|,;!?', repeat(' ', 40))) WHERE id = NEW.id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER delegations_words_dropped AFTER UPDATE OF text ON delegations FOR EACH ROW EXECUTE FUNCTION delegations_list_words();

-- Last, because these wait for those who use the table and keep others waiting.
DROP INDEX delegations_live, delegations_ended, delegations_state, delegations_agent, delegations_requester, delegations_repository,
  delegations_roots, delegations_ending, delegations_cost, delegations_wrong, delegations_approved, delegations_words, delegations_open,
  delegations_untaken; -- delegations_hop begins with the same columns
ALTER TABLE delegations DROP COLUMN words;
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL; -- roots, too: all that lives
CREATE INDEX delegations_landing ON delegations (repository) WHERE state = 'landing';
-- A token is a hash, so its index need not keep an order, and its entries are small.
DROP INDEX delegations_token;
CREATE INDEX delegations_token ON delegations USING hash (token_hash) WHERE token_hash <> '';
ALTER TABLE delegations SET (fillfactor = 70);

-- +goose Down
ALTER TABLE delegations RESET (fillfactor);
DROP INDEX delegations_landing;
DROP INDEX delegations_open;
DROP INDEX delegations_token;
CREATE INDEX delegations_token ON delegations (token_hash) WHERE token_hash <> '';
ALTER TABLE delegations ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (
  to_tsvector('simple', translate(text, './\-_:@#''"`<>()[]{}=+*&|,;!?', repeat(' ', 40)))) STORED;
CREATE INDEX delegations_words ON delegations USING gin (words);
CREATE INDEX delegations_untaken ON delegations (parent_id, generation) WHERE parent_id <> '' AND NOT taken;
CREATE INDEX delegations_open ON delegations (parent_id) WHERE ended_at IS NULL AND parent_id <> '';
CREATE INDEX delegations_live ON delegations (to_agent, state) WHERE ended_at IS NULL;
CREATE INDEX delegations_ended ON delegations (to_agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX delegations_state ON delegations (state, id);
CREATE INDEX delegations_agent ON delegations (to_agent, id);
CREATE INDEX delegations_requester ON delegations (requester, id) WHERE requester <> '';
CREATE INDEX delegations_repository ON delegations (repository, id) WHERE repository <> '';
CREATE INDEX delegations_roots ON delegations (id) WHERE parent_id = '';
CREATE INDEX delegations_ending ON delegations (right(id, 6));
CREATE INDEX delegations_cost ON delegations (usd_micros, task_id) WHERE parent_id = '' AND usd_micros IS NOT NULL;
CREATE INDEX delegations_wrong ON delegations (state, ended_at) WHERE state IN ('failed', 'rejected', 'expired') AND parent_id = '';
CREATE INDEX delegations_approved ON delegations (state, ended_at) WHERE approval_id <> '' AND ended_at IS NOT NULL;
DROP TRIGGER delegations_words_dropped ON delegations;
DROP FUNCTION delegations_list_words();
DROP TABLE listing_words;
DROP TABLE listing;
DELETE FROM cursors WHERE name = 'listing';
