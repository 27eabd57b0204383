-- +goose Up
-- mode: where a yes may be given. lineage: whom four eyes keep from approving. next_at: the next reminder or escalation.
ALTER TABLE requests ADD COLUMN mode TEXT NOT NULL DEFAULT 'any';
ALTER TABLE requests ADD COLUMN lineage TEXT NOT NULL DEFAULT '[]';
ALTER TABLE requests ADD COLUMN next_at BIGINT;
ALTER TABLE requests ADD COLUMN reminded BIGINT NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN escalated BIGINT NOT NULL DEFAULT 0;
-- made: '' by the agent, files, edit or rebase, from revision made_from. shadow: what rules on trial would have said.
ALTER TABLE revisions ADD COLUMN made TEXT NOT NULL DEFAULT '';
ALTER TABLE revisions ADD COLUMN made_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE revisions ADD COLUMN editor TEXT NOT NULL DEFAULT '';
ALTER TABLE revisions ADD COLUMN declined TEXT NOT NULL DEFAULT '[]';
ALTER TABLE revisions ADD COLUMN shadow TEXT NOT NULL DEFAULT '';
-- for_id: the absent person whose seat was used.
ALTER TABLE decisions ADD COLUMN for_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE decisions ADD COLUMN for_name TEXT NOT NULL DEFAULT '';
ALTER TABLE decisions ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
ALTER TABLE decisions ADD COLUMN comments TEXT NOT NULL DEFAULT '[]';
-- holder: the node that delivers it just now. sent_at: first delivery. digest: the message that this card is a line of.
ALTER TABLE cards ADD COLUMN holder TEXT NOT NULL DEFAULT '';
ALTER TABLE cards ADD COLUMN sent_at BIGINT;
ALTER TABLE cards ADD COLUMN digest TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Out of office: who has the right meanwhile.
ALTER TABLE users ADD COLUMN away_to TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN away_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN away_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX requests_next ON requests (next_at) WHERE state = 'pending' AND next_at IS NOT NULL;
CREATE INDEX cards_sent ON cards (channel, address, sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX cards_digest ON cards (digest) WHERE digest <> '';
CREATE INDEX cards_held ON cards (holder) WHERE holder <> '';
CREATE INDEX cards_dead ON cards (channel) WHERE dead = 1;

-- An account of a channel that belongs to a person, by the channel's numeric id.
CREATE TABLE accounts (
  channel   TEXT NOT NULL,
  id        BIGINT NOT NULL,
  user_id   TEXT COLLATE "C" NOT NULL REFERENCES users (id),
  name      TEXT NOT NULL,
  linked_at BIGINT NOT NULL,
  PRIMARY KEY (channel, id)
);
CREATE INDEX accounts_user ON accounts (user_id);

CREATE TABLE link_codes (
  hash       TEXT NOT NULL PRIMARY KEY,
  channel    TEXT NOT NULL,
  user_id    TEXT COLLATE "C" NOT NULL REFERENCES users (id),
  expires_at BIGINT NOT NULL,
  used_at    BIGINT
);
CREATE INDEX link_codes_expires ON link_codes (expires_at);

-- A message beside the cards that is sent once: a reminder, an escalation.
CREATE TABLE notices (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  request_id TEXT COLLATE "C" NOT NULL REFERENCES requests (id),
  revision   BIGINT NOT NULL,
  channel    TEXT NOT NULL,
  address    TEXT NOT NULL,
  kind       TEXT NOT NULL,
  data       TEXT NOT NULL,
  due_at     BIGINT NOT NULL,
  attempts   BIGINT NOT NULL DEFAULT 0,
  error      TEXT NOT NULL DEFAULT '',
  dead       BIGINT NOT NULL DEFAULT 0,
  holder     TEXT NOT NULL DEFAULT '',
  sent_at    BIGINT
);
CREATE INDEX notices_due ON notices (due_at) WHERE sent_at IS NULL AND dead = 0;
CREATE INDEX notices_request ON notices (request_id);
CREATE INDEX notices_dead ON notices (channel) WHERE dead = 1;

-- One message that lists many requests in place of a flood of cards.
CREATE TABLE digests (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  channel     TEXT NOT NULL,
  address     TEXT NOT NULL,
  external_id TEXT NOT NULL DEFAULT '',
  due_at      BIGINT NOT NULL,
  attempts    BIGINT NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT '',
  dead        BIGINT NOT NULL DEFAULT 0,
  open        BIGINT NOT NULL DEFAULT 1,
  holder      TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL
);
CREATE INDEX digests_due ON digests (channel, due_at) WHERE open = 1 AND dead = 0;
CREATE INDEX digests_dead ON digests (channel) WHERE dead = 1;
CREATE INDEX digests_newest ON digests (channel, address, created_at);

-- How the other side of a channel is, for pages and doctor.
CREATE TABLE channel_health (
  channel TEXT NOT NULL PRIMARY KEY,
  state   TEXT NOT NULL,
  detail  TEXT NOT NULL,
  node    TEXT NOT NULL,
  at      BIGINT NOT NULL
);

-- Line comments that a person has not sent with a verdict yet.
CREATE TABLE drafts (
  user_id    TEXT COLLATE "C" NOT NULL REFERENCES users (id),
  request_id TEXT COLLATE "C" NOT NULL REFERENCES requests (id),
  revision   BIGINT NOT NULL,
  path       TEXT NOT NULL,
  side       TEXT NOT NULL,
  line       BIGINT NOT NULL,
  code       TEXT NOT NULL,
  text       TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (user_id, request_id, path, side, line)
);
CREATE INDEX drafts_request ON drafts (request_id);

-- +goose Down
DROP TABLE drafts;
DROP TABLE channel_health;
DROP TABLE digests;
DROP TABLE notices;
DROP TABLE link_codes;
DROP TABLE accounts;
DROP INDEX cards_dead;
DROP INDEX cards_held;
DROP INDEX cards_digest;
DROP INDEX cards_sent;
DROP INDEX requests_next;
ALTER TABLE users DROP COLUMN away_until;
ALTER TABLE users DROP COLUMN away_from;
ALTER TABLE users DROP COLUMN away_to;
ALTER TABLE cards DROP COLUMN digest;
ALTER TABLE cards DROP COLUMN sent_at;
ALTER TABLE cards DROP COLUMN holder;
ALTER TABLE decisions DROP COLUMN comments;
ALTER TABLE decisions DROP COLUMN files;
ALTER TABLE decisions DROP COLUMN for_name;
ALTER TABLE decisions DROP COLUMN for_id;
ALTER TABLE revisions DROP COLUMN shadow;
ALTER TABLE revisions DROP COLUMN declined;
ALTER TABLE revisions DROP COLUMN editor;
ALTER TABLE revisions DROP COLUMN made_from;
ALTER TABLE revisions DROP COLUMN made;
ALTER TABLE requests DROP COLUMN escalated;
ALTER TABLE requests DROP COLUMN reminded;
ALTER TABLE requests DROP COLUMN next_at;
ALTER TABLE requests DROP COLUMN lineage;
ALTER TABLE requests DROP COLUMN mode;
