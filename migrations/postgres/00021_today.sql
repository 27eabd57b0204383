-- +goose Up
-- What the overview counts of a day, so that it reads that day and no other.
CREATE INDEX requests_decided ON requests (decided_at, state, created_at) WHERE decided_at IS NOT NULL;
CREATE INDEX delegations_wrong ON delegations (state, ended_at) WHERE state IN ('failed', 'rejected', 'expired') AND parent_id = '';
CREATE INDEX delegations_approved ON delegations (state, ended_at) WHERE approval_id <> '' AND ended_at IS NOT NULL;
CREATE INDEX events_refused ON events (at) WHERE type = 'delegation.refused';
-- Decisions are counted by channel and verdict now: the sums are made again from the log.
DELETE FROM insight;
DELETE FROM insight_open;
DELETE FROM cursors WHERE name = 'insight';

-- +goose Down
DROP INDEX events_refused;
DROP INDEX delegations_approved;
DROP INDEX delegations_wrong;
DROP INDEX requests_decided;
