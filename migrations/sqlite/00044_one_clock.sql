-- +goose Up
-- Nodes have files and clocks of their own. The rules that were in force before are known by
-- their digest, so that a node which starts with an old file does not bring them back while
-- others work by those that took their place.
ALTER TABLE configuration ADD COLUMN rules TEXT NOT NULL DEFAULT ''; -- digest; '' where it was recorded before
CREATE TABLE rules_taken (
  digest   TEXT   NOT NULL PRIMARY KEY,
  taken_at BIGINT NOT NULL -- last
);
ALTER TABLE nodes ADD COLUMN rules TEXT NOT NULL DEFAULT '';     -- digest of those that it has
ALTER TABLE nodes ADD COLUMN alive_at BIGINT NOT NULL DEFAULT 0; -- as seen, by the database's clock
-- 0 here, where one process makes all delegations and its clock is the only one.
ALTER TABLE delegations ADD COLUMN made_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE delegations DROP COLUMN made_at;
ALTER TABLE nodes DROP COLUMN alive_at;
ALTER TABLE nodes DROP COLUMN rules;
DROP TABLE rules_taken;
ALTER TABLE configuration DROP COLUMN rules;
