package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator"
)

// Remembered is the child that was noted under a key of what is done once.
func (t *Tx) Remembered(_ context.Context, key string) (id string, err error) {
	err = t.q.row(t.ctx, "select delegation_id from dedup where dedup_key = ?", clean(key)).Scan(&id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", orchestrator.ErrNotFound
	case err != nil:
		return "", fmt.Errorf("look whether %s was done: %w", key, err)
	}
	return id, nil
}

// Remember notes a child under a key, ErrExists where one is noted.
func (t *Tx) Remember(_ context.Context, key, childID string) error {
	n, err := changed(t.q.exec(t.ctx, "insert into dedup (dedup_key, delegation_id, made_at) values (?, ?, ?) on conflict (dedup_key) do nothing", clean(key), childID, micros(t.now)))
	if err != nil {
		return fmt.Errorf("note that %s is done: %w", key, err)
	}
	if n == 0 {
		return orchestrator.ErrExists
	}
	return nil
}

// Forget drops what was noted under a key.
func (t *Tx) Forget(_ context.Context, key string) error {
	if _, err := t.q.exec(t.ctx, "delete from dedup where dedup_key = ?", clean(key)); err != nil {
		return fmt.Errorf("forget that %s was done: %w", key, err)
	}
	return nil
}

// sweepDedup is how many keys one statement of the sweep removes.
const sweepDedup = 5000

// A key that is young itself waits for a later sweep, so that most rows are not looked at.
const purgeDedup = `delete from dedup where dedup_key in (select k.dedup_key from dedup k where k.made_at < ?
	and exists (select 1 from delegations d where d.id = k.delegation_id and d.ended_at < ?) limit ? + 0)`

// PurgeDedup removes the keys of what is done once whose child ended before that time.
func (s *Store) PurgeDedup(ctx context.Context, ended time.Time) (all int64, err error) {
	for {
		n, err := changed(s.w.exec(ctx, purgeDedup, micros(ended), micros(ended), sweepDedup))
		if all += n; err != nil || n < sweepDedup {
			return all, s.explain(err)
		}
	}
}
