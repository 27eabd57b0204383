-- +goose Up
-- What Telegram sent, stored before it is acknowledged. body: the update as JSON. error: why handling it failed last.
CREATE TABLE telegram_updates (
  bot         BIGINT NOT NULL,
  update_id   BIGINT NOT NULL,
  body        TEXT NOT NULL,
  received_at BIGINT NOT NULL,
  due_at      BIGINT NOT NULL,
  attempts    BIGINT NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT '',
  done_at     BIGINT,
  PRIMARY KEY (bot, update_id)
);
CREATE INDEX telegram_updates_due ON telegram_updates (due_at) WHERE done_at IS NULL;

-- What a button under a card stands for. hash: of the random text that the button carries. message: 0 until it was sent.
CREATE TABLE telegram_buttons (
  hash       TEXT NOT NULL PRIMARY KEY,
  request_id TEXT NOT NULL,
  revision   BIGINT NOT NULL,
  digest     TEXT NOT NULL,
  chat       BIGINT NOT NULL,
  message    BIGINT NOT NULL DEFAULT 0,
  verdict    TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX telegram_buttons_request ON telegram_buttons (request_id);
CREATE INDEX telegram_buttons_created ON telegram_buttons (created_at);

-- A question that asks one account for its reason. Its reply is the reason.
CREATE TABLE telegram_prompts (
  chat       BIGINT NOT NULL,
  message    BIGINT NOT NULL,
  account    BIGINT NOT NULL,
  request_id TEXT NOT NULL,
  revision   BIGINT NOT NULL,
  digest     TEXT NOT NULL,
  verdict    TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at    BIGINT,
  PRIMARY KEY (chat, message)
);
CREATE INDEX telegram_prompts_account ON telegram_prompts (chat, account);

-- +goose Down
DROP TABLE telegram_prompts;
DROP TABLE telegram_buttons;
DROP TABLE telegram_updates;
