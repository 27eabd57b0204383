package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
)

// optimistic runs fn on what load reads without a lock. errStale means that it has to run
// again under one.
func (s *Store) optimistic(ctx context.Context, t *Tx, load func() error, fn func(*Tx) error) error {
	defer t.rollback()
	if err := load(); err != nil {
		return s.ended(ctx, err)
	}
	err := fn(t)
	if err == nil {
		err = t.prepare()
	}
	nothing := err == nil && t.tx == nil && !t.changed()
	switch {
	case t.stale, (err != nil || nothing) && !t.valid():
		return errStale
	case err != nil:
		return s.ended(ctx, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case nothing:
		t.fate = committed
		return nil
	case t.tx == nil && t.small():
		return s.apply(ctx, t)
	}
	if err := t.settled(); err != nil {
		if t.stale {
			return errStale
		}
		return s.ended(ctx, err)
	}
	return t.commit(ctx)
}

// valid reports whether what was read is true still: no write proves it where there is none.
// Leases are written without a version, so nothing proves what memory says of them.
func (t *Tx) valid() bool {
	switch {
	case t.leased:
		return false
	case t.locked: // which proved what was assumed before
		return true
	case t.made:
		same, err := t.assured(t.read())
		return err == nil && same
	}
	same, err := t.sameHead(t.read().row(t.till, selectHead, t.row.ID))
	if err == nil && same {
		same, err = t.assured(t.read())
	}
	return err == nil && same
}

// sameHead reports whether the head of the task is as it was read.
func (t *Tx) sameHead(row scanner) (bool, error) {
	var version int64
	var hash string
	err := row.Scan(&version, &hash)
	return version == t.was.version && hash == t.was.LastHash, err
}

// apply writes what t has to write, where its task is as it was read.
func (s *Store) apply(ctx context.Context, t *Tx) error {
	err := s.dialect.apply(ctx, t)
	kind := s.dialect.classify(err)
	over := ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	switch {
	case err == nil:
		t.fate = committed
		s.tasks.learn(t)
		return nil
	case errors.As(err, new(commitError)):
		t.fate = unknown
		return err
	case over && s.told == nil: // it has left the group, which never wrote it
		return err
	case !over && kind != away && kind != conflict && !errors.Is(err, errStale) && !errors.Is(err, orchestrator.ErrLost):
		return s.ended(ctx, err)
	}
	// A connection that broke, or a driver that tried again, may have written it. Else what
	// was in the way shows under the lock.
	s.tasks.drop(t.row.ID)
	landed, lost := s.landed(ctx, t)
	switch {
	case lost != nil, !landed && t.made && (over || kind == away): // no row is there that could fence it off
		t.fate = unknown
		return commitError{s.ended(ctx, errors.Join(err, lost))}
	case landed:
		t.fate = committed
		return nil
	case over:
		return err
	}
	return errStale
}

// landedTime is how long a step whose context has ended still looks for what came of it.
const landedTime = time.Second

// landed reports whether the write of t is committed: its last event, whose id nobody else
// has, is in the log then, whatever came after it. A statement that still waits for the
// task's row is waited for by the lock, and one that is still on its way finds another
// version of the task, so that what landed says stays true.
func (s *Store) landed(ctx context.Context, t *Tx) (bool, error) {
	if s.told == nil {
		return false, nil // one file, whose commits answer
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(t.ctx, landedTime)
		defer cancel()
	}
	tx, err := s.w.begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	b := bound{s.w, tx}
	same, err := t.sameHead(b.row(ctx, selectHead+s.dialect.lock, t.row.ID))
	var hash string
	if err == nil {
		err = b.row(ctx, "select hash from events where task_id = ? and n = ?", t.row.ID, t.row.LastN).Scan(&hash)
	}
	switch {
	case err == nil && hash == t.row.LastHash:
		return true, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return false, err
	case !same: // as it is for whatever is on its way
		return false, nil
	}
	if _, err = b.exec(ctx, countVersion, t.row.ID); err == nil {
		err = s.w.commit(tx)
	}
	return false, err
}

// load reads the task: from memory, else from the database, without a lock. The time is
// taken after that, as under the lock.
func (t *Tx) load(taskID string) (err error) {
	if !t.s.tasks.recall(t, taskID) {
		t.row, err = scanTask(t.read().row(t.till, selectTask+" where id = ?", taskID))
		t.was = t.row
	}
	t.now = t.s.now()
	return err
}

// small reports whether one statement can take it all. A server's answer to one may be
// lost, and only an event tells then whether it is committed (landed).
func (t *Tx) small() bool {
	if t.s.told != nil && len(t.events) == 0 {
		return false
	}
	rows := 0
	for _, l := range t.order {
		if l.fresh || l.dirty {
			rows++
		}
	}
	return rows <= maxRows && len(t.events) <= maxEvents && !t.resumed()
}

// The most that one statement writes.
const (
	maxRows   = 4
	maxEvents = 2 * batch
)

// count writes the task's counters, where nobody has written it since it was read.
func (t *Tx) count(ctx context.Context, b bound) error {
	n, err := changed(b.exec(ctx, updateTask, t.taskArgs()...))
	if err == nil && n == 0 {
		err = errStale
	}
	return err
}

// opened is the transaction of the database, which its first statement begins.
type opened struct{ t *Tx }

func (o opened) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if err := o.t.settled(); err != nil {
		return nil, err
	}
	return o.t.bound().exec(ctx, text, args...)
}

func (o opened) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if err := o.t.settled(); err != nil {
		return nil, err
	}
	return o.t.bound().query(ctx, text, args...)
}

func (o opened) row(ctx context.Context, text string, args ...any) scanner {
	if err := o.t.settled(); err != nil {
		return failed{err}
	}
	return o.t.bound().row(ctx, text, args...)
}

// failed is a row that could not be asked for.
type failed struct{ error }

func (f failed) Scan(...any) error { return f.error }

func (t *Tx) bound() bound { return bound{t.s.w, t.tx} }

// read is where rows of the tree are read that nothing pending can change.
func (t *Tx) read() querier {
	if t.tx != nil {
		return t.bound()
	}
	return t.s.r.h
}

// find reads rows of the tree as this transaction has them.
func (t *Tx) find(text string, args ...any) (*sql.Rows, error) {
	if t.pending() {
		return t.q.query(t.ctx, text, args...)
	}
	return t.read().query(t.ctx, text, args...)
}

func (t *Tx) pending() bool {
	return slices.ContainsFunc(t.order, func(l *line) bool { return l.fresh || l.dirty })
}

// settled begins the transaction of the database and writes the rows of the tree that are
// pending, so that the next statement sees them.
func (t *Tx) settled() error {
	if t.tx == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	for _, l := range t.order {
		if !l.fresh && !l.dirty {
			continue
		}
		if err := l.write(t.ctx, t.bound(), t.row.ID); err != nil {
			t.stale = t.stale || t.late && errors.Is(err, orchestrator.ErrLost)
			return err
		}
		l.fresh, l.dirty, l.was, t.wrote = false, false, fenceOf(&l.row), true
	}
	return nil
}

// begin begins the transaction of the database and locks the row that was read before.
func (t *Tx) begin() (err error) {
	if t.stale {
		return errStale
	}
	if t.tx, err = t.s.w.begin(t.till); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t.locked, t.late = true, true
	if t.made {
		t.made = false
		row := t.was
		args, err := row.args()
		if err == nil {
			_, err = t.bound().exec(t.ctx, insertTask, args...)
		}
		return t.assure(err)
	}
	same, err := t.sameHead(t.bound().row(t.till, selectHead+t.s.dialect.lock, t.row.ID))
	if err == nil && !same {
		t.stale, err = true, errStale
	}
	return t.assure(err)
}

// assure goes on where there is no error yet and breakers are as they were assumed to be.
func (t *Tx) assure(err error) error {
	if err != nil {
		return err
	}
	same, err := t.assured(t.bound())
	if err == nil && !same {
		t.stale, err = true, errStale
	}
	return err
}
