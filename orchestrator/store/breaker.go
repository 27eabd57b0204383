package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator/guard"
)

const (
	breakerColumns = "agent, state, failures, opened_at, until, probe, probe_until, reason, changed_at"
	selectBreakers = "select " + breakerColumns + " from breakers order by agent"
	selectBreaker  = "select " + breakerColumns + " from breakers where agent = ?"
	insertBreaker  = `insert into breakers (agent, state, failures, changed_at) values (?, 'closed', 0, ?) on conflict do nothing`
	updateBreaker  = `update breakers set state = ?, failures = ?, opened_at = ?, until = ?, probe = ?, probe_until = ?, reason = ?, changed_at = ?
	where agent = ?`
)

func scanBreaker(row scanner) (guard.Breaker, error) {
	var b guard.Breaker
	var opened, until, probe sql.NullInt64
	var changed int64
	err := row.Scan(&b.Agent, &b.State, &b.Failures, &opened, &until, &b.Probe, &probe, &b.Reason, &changed)
	b.OpenedAt, b.Until, b.ProbeUntil, b.ChangedAt = fromMicros(opened.Int64), fromMicros(until.Int64), fromMicros(probe.Int64), fromMicros(changed)
	return b, err
}

// BreakerStates returns the breakers of agents that ever failed, by name.
func (s *Store) BreakerStates(ctx context.Context) ([]guard.Breaker, error) {
	rows, err := s.r.query(ctx, selectBreakers)
	all, err := collect(rows, err, scanBreaker)
	return all, s.explain(err)
}

// Breaker reads the breaker of an agent without locking it.
func (t *Tx) Breaker(_ context.Context, agent string) (guard.Breaker, error) {
	return readBreaker(t.read().row(t.ctx, selectBreaker, agent), agent)
}

// LockBreaker reads it and, on PostgreSQL, locks its row, which is made where there is
// none; SQLite's transaction has locked everything.
func (t *Tx) LockBreaker(_ context.Context, agent string) (guard.Breaker, error) {
	if _, err := t.q.exec(t.ctx, insertBreaker, agent, micros(t.now)); err != nil {
		return guard.Breaker{}, fmt.Errorf("make the breaker of %s: %w", agent, err)
	}
	return readBreaker(t.q.row(t.ctx, selectBreaker+t.s.dialect.lock, agent), agent)
}

func readBreaker(row scanner, agent string) (guard.Breaker, error) {
	b, err := scanBreaker(row)
	if errors.Is(err, sql.ErrNoRows) {
		return guard.Breaker{Agent: agent, State: guard.Closed}, nil
	}
	if err != nil {
		return b, fmt.Errorf("read the breaker of %s: %w", agent, err)
	}
	return b, nil
}

// PutBreaker stores a breaker whose row LockBreaker has locked.
func (t *Tx) PutBreaker(_ context.Context, b guard.Breaker) error {
	_, err := t.q.exec(t.ctx, updateBreaker, string(b.State), b.Failures, zeroNull(b.OpenedAt), zeroNull(b.Until), b.Probe, zeroNull(b.ProbeUntil),
		clean(b.Reason), micros(b.ChangedAt), b.Agent)
	if err != nil {
		return fmt.Errorf("write the breaker of %s: %w", b.Agent, err)
	}
	return nil
}

// zeroNull is a time of which zero means none.
func zeroNull(at time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: micros(at), Valid: !at.IsZero()}
}
