package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// Tx is one transaction that holds a task's row. It belongs to one goroutine and ends
// with the function that it was given to. Rows are read once: asked for again, the
// same pointer is returned.
//
// Its methods ignore the cancelling of their context: a transaction is short, it ends
// as a whole when the context of InTask does, and watching each statement costs more
// than most of them do.
type Tx struct {
	s   *Store
	ctx context.Context
	q   bound
	now time.Time

	row, was    taskRow // was is the row as read, to see whether it must be written
	events      []event.Event
	numbered    int // of events
	delegations map[string]*orchestrator.Delegation
	before      []func() error     // the commit
	after       []func()           // the commit
	undone      []func(maybe bool) // where there was none, or nobody knows
}

// How often a transaction is run again that the database undid or could not begin,
// and how long between, doubling.
const (
	maxTries   = 4
	firstPause = 10 * time.Millisecond
)

// commitError is a failure whose outcome is not known: it is never run again.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// inTask runs fn in a transaction that has locked the task's row.
func (s *Store) inTask(ctx context.Context, taskID string, fn func(*Tx) error) error {
	return s.transact(ctx, func(t *Tx) error {
		if err := t.lock(taskID); err != nil {
			return err
		}
		return fn(t)
	})
}

// transact runs fn in a transaction, again if the database undid it, and tells the
// watchers after the commit.
func (s *Store) transact(ctx context.Context, fn func(*Tx) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		t, err := s.once(ctx, fn)
		if err == nil {
			s.publish(t)
			for _, fn := range t.after {
				fn()
			}
			return nil
		}
		kind := s.dialect.classify(err)
		if errors.As(err, new(commitError)) || (kind != undone && kind != away) || try == maxTries || ctx.Err() != nil {
			return s.explain(err)
		}
		select {
		case <-ctx.Done():
			return s.explain(err)
		case <-time.After(pause + rand.N(pause)):
			pause *= 2
		}
	}
}

// once runs fn in one transaction.
func (s *Store) once(ctx context.Context, fn func(*Tx) error) (_ *Tx, err error) {
	sqlTx, err := s.w.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	t := &Tx{s: s, ctx: context.WithoutCancel(ctx), q: bound{s.w, sqlTx}, now: s.now()}
	done := false
	defer func() {
		if !done { // also when fn panics
			_ = sqlTx.Rollback()
			t.undo(false)
		}
	}()
	if err := fn(t); err != nil {
		return nil, s.ended(ctx, err)
	}
	if err := t.flush(); err != nil {
		return nil, s.ended(ctx, fmt.Errorf("write the events: %w", err))
	}
	done = true
	if err := sqlTx.Commit(); err != nil {
		t.undo(true)
		return nil, commitError{s.ended(ctx, fmt.Errorf("commit: %w", err))}
	}
	return t, nil
}

// OnCommit implements orchestrator.Tx.
func (t *Tx) OnCommit(fn func()) { t.after = append(t.after, fn) }

// OnRollback implements orchestrator.Tx.
func (t *Tx) OnRollback(fn func(maybe bool)) { t.undone = append(t.undone, fn) }

// undo tells that this try came to nothing, or that nobody knows what it came to. What was
// last registered is told first.
func (t *Tx) undo(maybe bool) {
	for _, fn := range slices.Backward(t.undone) {
		fn(maybe)
	}
}

// ended is the end of ctx where that is why the transaction failed: drivers then
// report a stopped statement, or a transaction or a connection that is gone.
func (s *Store) ended(ctx context.Context, err error) error {
	kind := s.dialect.classify(err)
	if ctx.Err() != nil && (errors.Is(err, sql.ErrTxDone) || kind == away || kind == stopped) {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}

// lock reads and locks the task's row. The time is taken after that, so that the
// events of a task are in the order of their times as far as one clock goes.
func (t *Tx) lock(taskID string) error {
	row, err := scanTask(t.q.row(t.ctx, selectTask+" where id = ?"+t.s.dialect.lock, taskID))
	if err != nil {
		if errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		return fmt.Errorf("lock task %s: %w", taskID, err)
	}
	t.row, t.was, t.now = row, row, t.s.now()
	return nil
}

// Now is the time of this transaction.
func (t *Tx) Now() time.Time { return t.now }

// Task is the locked row.
func (t *Tx) Task() *orchestrator.Task { return &t.row.Task }

// flush numbers the events and writes them with the task's counters.
func (t *Tx) flush() error {
	t.number()
	for _, fn := range t.before {
		if err := fn(); err != nil {
			return err
		}
	}
	if err := t.writeCodes(); err != nil {
		return err
	}
	if len(t.events) == 0 && sameTask(&t.row, &t.was) {
		return nil
	}
	if t.row.gone > 0 && len(t.events) > 0 {
		// Something happened after retention was here: it looks again.
		if _, err := t.q.exec(t.ctx, "update tasks set texts_gone = 0, blobs_gone = 0, orphans_gone = 0 where id = ?", t.row.ID); err != nil {
			return err
		}
	}
	return t.s.dialect.flush(t.ctx, t)
}

// sameTask reports whether the columns that updateTask writes are the same.
func sameTask(a, b *taskRow) bool {
	return sameTime(a.EndedAt, b.EndedAt) && sameTime(a.PausedAt, b.PausedAt) && a.RootID == b.RootID && a.Handoffs == b.Handoffs && a.seq == b.seq && a.LastN == b.LastN
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// taskArgs are the arguments of updateTask.
func (t *Tx) taskArgs() []any {
	return []any{t.row.RootID, t.row.Handoffs, t.row.seq, t.row.LastN, t.row.LastHash, nullMicros(t.row.EndedAt), nullMicros(t.row.PausedAt), t.row.ID}
}

// publish tells this process, and in time the other nodes, what t has committed.
func (s *Store) publish(t *Tx) {
	if len(t.events) == 0 {
		return
	}
	n := event.Notice{TaskID: t.row.ID, First: t.events[0].N, Last: t.row.LastN, Events: t.events}
	s.seq.own.Add(int64(len(t.events)))
	s.hub.Publish(n)
	if s.told != nil {
		s.told.add(n)
		wake(s.seq.wake)
		return
	}
	s.ordered.poke()
}

// explain turns a driver's error into one that says what to do.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if advice := s.dialect.advice(err); advice != "" {
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "%s: %w", advice, err)
	}
	return err
}
