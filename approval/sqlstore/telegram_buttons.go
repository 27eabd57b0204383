package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval/telegram"
	"gatehouse/orchestrator/store"
)

var _ telegram.Rows = (*Store)(nil)

// AddButtons stores what buttons stand for.
func (s *Store) AddButtons(ctx context.Context, buttons []telegram.Bound) error {
	if len(buttons) == 0 {
		return nil
	}
	return s.transact(ctx, func(t *Tx) error {
		for _, b := range buttons {
			_, err := t.Exec("insert into telegram_buttons (hash, request_id, revision, digest, chat, message, verdict, for_task, choice, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				b.Hash, b.RequestID, b.Revision, b.Digest, b.Chat, b.Message, string(b.Verdict), store.Flag(b.ForTask), b.Choice, store.Micros(b.At))
			if err != nil {
				return fmt.Errorf("store a button: %w", err)
			}
		}
		return nil
	})
}

// PutButtons records which message buttons are under, once it was sent.
func (s *Store) PutButtons(ctx context.Context, hashes []string, message int) error {
	if len(hashes) == 0 {
		return nil
	}
	_, err := s.Exec(ctx, "update telegram_buttons set message = ? where hash in "+store.Marks(len(hashes)), append([]any{message}, store.Args(hashes)...)...)
	return s.Advise(err)
}

// Button returns what the button with this hash stands for; ErrNotFound when nothing.
func (s *Store) Button(ctx context.Context, hash string) (telegram.Bound, error) {
	b := telegram.Bound{Hash: hash}
	err := s.Row(ctx, "select request_id, revision, digest, chat, message, verdict, for_task, choice, created_at from telegram_buttons where hash = ?", hash).
		Scan(&b.RequestID, &b.Revision, &b.Digest, &b.Chat, &b.Message, &b.Verdict, &b.ForTask, &b.Choice, store.Time(&b.At))
	return b, s.Advise(err)
}

// AddPrompt stores a question.
func (s *Store) AddPrompt(ctx context.Context, p telegram.Prompt) error {
	_, err := s.Exec(ctx, `insert into telegram_prompts (chat, message, account, request_id, revision, digest, verdict, created_at) values (?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (chat, message) do nothing`, p.Chat, p.Message, p.Account, p.RequestID, p.Revision, p.Digest, string(p.Verdict), store.Micros(p.At))
	return s.Advise(err)
}

const selectPrompt = "select chat, message, account, request_id, revision, digest, verdict, created_at, used_at from telegram_prompts"

func scanPrompt(row store.Scanner) (telegram.Prompt, error) {
	var p telegram.Prompt
	err := row.Scan(&p.Chat, &p.Message, &p.Account, &p.RequestID, &p.Revision, &p.Digest, &p.Verdict, store.Time(&p.At), store.MaybeTime(&p.Used))
	return p, err
}

// Prompt returns the question that a message asked; ErrNotFound when it asked none.
func (s *Store) Prompt(ctx context.Context, chat int64, message int) (telegram.Prompt, error) {
	return store.ReadOne(ctx, s.Store, scanPrompt, selectPrompt+" where chat = ? and message = ?", chat, message)
}

// OpenPrompt returns the newest question to an account in a chat that was asked since
// then and has no answer; ErrNotFound when there is none.
func (s *Store) OpenPrompt(ctx context.Context, chat, account int64, since time.Time) (telegram.Prompt, error) {
	return store.ReadOne(ctx, s.Store, scanPrompt, selectPrompt+" where chat = ? and account = ? and used_at is null and created_at >= ? order by created_at desc, message desc limit 1",
		chat, account, store.Micros(since))
}

// UsePrompt records that a question was answered, and reports whether this was the
// first answer.
func (s *Store) UsePrompt(ctx context.Context, chat int64, message int, at time.Time) (bool, error) {
	n, err := store.Changed(s.Exec(ctx, "update telegram_prompts set used_at = ? where chat = ? and message = ? and used_at is null", store.Micros(at), chat, message))
	return n == 1, s.Advise(err)
}

// ForgetButtons removes buttons and questions from before then, and returns how many.
// Those of a request that still waits stay: its card shows them. Whoever presses another
// one is told that it is not known any more.
func (s *Store) ForgetButtons(ctx context.Context, before time.Time) (int, error) {
	var all int64
	for _, table := range []string{"telegram_buttons", "telegram_prompts"} {
		n, err := store.Changed(s.Exec(ctx, "delete from "+table+" where created_at < ? and not exists (select 1 from requests r where r.id = "+table+".request_id and r.state = 'pending')", store.Micros(before)))
		if err != nil {
			return int(all), s.Advise(err)
		}
		all += n
	}
	return int(all), nil
}
