package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/approval/telegram"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"
)

var _ telegram.Inbox = (*Store)(nil)

// AddUpdates stores what a bot received, due at now. What is stored already stays as it is.
func (s *Store) AddUpdates(ctx context.Context, bot int64, updates []telegram.RawUpdate, now time.Time) error {
	if len(updates) == 0 {
		return nil
	}
	return s.transact(ctx, func(t *Tx) error {
		for _, u := range updates {
			_, err := t.Exec(`insert into telegram_updates (bot, update_id, body, received_at, due_at) values (?, ?, ?, ?, ?)
				on conflict (bot, update_id) do nothing`, bot, u.ID, store.Clean(string(u.Body)), store.Micros(now), store.Micros(now))
			if err != nil {
				return fmt.Errorf("store update %d: %w", u.ID, err)
			}
		}
		return nil
	})
}

// LastUpdate is the highest number that a bot's stored updates have, 0 when there is none.
func (s *Store) LastUpdate(ctx context.Context, bot int64) (int64, error) {
	return store.ReadOne(ctx, s.Store, store.Scalar[int64], "select coalesce(max(update_id), 0) from telegram_updates where bot = ?", bot)
}

// DueUpdates leases updates of a bot that are due, in their order; nobody else gets them before until.
func (s *Store) DueUpdates(ctx context.Context, bot int64, now, until time.Time, limit int) ([]telegram.RawUpdate, error) {
	const due = " from telegram_updates where done_at is null and due_at <= ? and bot = ?"
	if due, err := s.anyDue(ctx, due, store.Micros(now), bot); err != nil || !due {
		return nil, err
	}
	rows, err := s.Change(ctx, `update telegram_updates set due_at = ? where (bot, update_id) in (select bot, update_id`+due+
		" order by update_id limit ?"+s.SkipLocked()+") returning update_id, body", store.Micros(until), store.Micros(now), bot, limit)
	updates, err := store.Collect(rows, err, func(row store.Scanner) (telegram.RawUpdate, error) {
		var u telegram.RawUpdate
		err := row.Scan(&u.ID, &u.Body)
		return u, err
	})
	slices.SortFunc(updates, func(a, b telegram.RawUpdate) int { return cmp.Compare(a.ID, b.ID) })
	return updates, s.Advise(err)
}

// BeginUpdate counts an attempt to handle a leased update and extends its lease, which
// DueUpdates gave until leased. Somebody else who has it by now keeps it.
func (s *Store) BeginUpdate(ctx context.Context, bot, id int64, leased, until time.Time) (attempts int, mine bool, err error) {
	err = s.ChangeOne(ctx, "update telegram_updates set due_at = ?, attempts = attempts + 1 where bot = ? and update_id = ? and due_at = ? and done_at is null returning attempts",
		store.Micros(until), bot, id, store.Micros(leased)).Scan(&attempts)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return 0, false, nil
	}
	return attempts, err == nil, s.Advise(err)
}

// DoneUpdate records that an update was handled.
func (s *Store) DoneUpdate(ctx context.Context, bot, id int64, now time.Time) error {
	_, err := s.Exec(ctx, "update telegram_updates set done_at = ?, error = '' where bot = ? and update_id = ?", store.Micros(now), bot, id)
	return s.Advise(err)
}

// DropUpdates records that nothing is done with updates.
func (s *Store) DropUpdates(ctx context.Context, bot int64, ids []int64, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	args := []any{store.Micros(now), bot}
	for _, id := range ids {
		args = append(args, id)
	}
	_, err := s.Exec(ctx, "update telegram_updates set done_at = ?, error = 'dropped' where bot = ? and done_at is null and update_id in "+store.Marks(len(ids)), args...)
	return s.Advise(err)
}

// FailUpdate records that handling an update failed. It is due again at next, unless it is given up.
func (s *Store) FailUpdate(ctx context.Context, bot, id int64, problem string, next time.Time, giveUp bool) error {
	set := "due_at = ?"
	if giveUp {
		set = "done_at = ?"
	}
	_, err := s.Exec(ctx, "update telegram_updates set error = ?, "+set+" where bot = ? and update_id = ? and done_at is null", store.Clean(problem), store.Micros(next), bot, id)
	return s.Advise(err)
}

// ReturnUpdate ends a lease that was given until leased: the update is due again.
// Somebody else who has it by now keeps it.
func (s *Store) ReturnUpdate(ctx context.Context, bot, id int64, leased, now time.Time) error {
	_, err := s.Exec(ctx, "update telegram_updates set due_at = ? where bot = ? and update_id = ? and due_at = ? and done_at is null", store.Micros(now), bot, id, store.Micros(leased))
	return s.Advise(err)
}

// ForgetUpdates removes updates that were done with before then.
func (s *Store) ForgetUpdates(ctx context.Context, bot int64, before time.Time) error {
	_, err := s.Exec(ctx, "delete from telegram_updates where done_at < ? and bot = ?", store.Micros(before), bot)
	return s.Advise(err)
}
