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

// Tx is one transaction on a task. It belongs to one goroutine and ends with the function
// that it was given to. Rows are read once: asked for again, the same pointer is returned.
//
// Most of them need no transaction of the database. They read without locks, or from
// memory (task.go), and write everything in one statement that holds only where the
// task's version is still the one that was read. A statement of their own (q) begins a
// transaction that locks the task's row and compares its version. Where the version is
// another one, all of it runs again under the lock.
//
// Its methods ignore the cancelling of their context: a transaction is short, it ends
// as a whole when the context of InTask does, and watching each statement costs more
// than most of them do. What may wait for others ends with that context: till.
type Tx struct {
	s    *Store
	ctx  context.Context
	till context.Context
	q    opened // sends a statement in the transaction of the database, which it begins
	tx   *sql.Tx
	now  time.Time

	row, was taskRow // was is the row as read, to see whether it must be written
	made     bool    // the row is new and is written with the rest
	locked   bool    // the row is locked since it was read
	late     bool    // the transaction of the database began after it was read
	leased   bool    // rows that somebody held were read from memory, where a lease may be old
	stale    bool    // somebody has written since it was read
	wrote    bool    // rows of the tree, by statements of their own
	prepared bool    // the events are numbered, and what goes before them is written
	complete bool    // lines has the whole tree, in its order

	events   []event.Event
	numbered int // of events
	lines    map[string]*line
	order    []*line
	absent   map[hop]bool
	assumed  []string           // agents whose breakers were not read; see Breaker
	looks    []look             // what the write looks at as well
	before   []func() error     // the commit
	after    []func()           // the commit
	undone   []func(maybe bool) // where there was none, or nobody knows
	fate     fate
}

// How often a transaction is run again that the database undid or could not begin,
// and how long between, doubling.
const (
	maxTries   = 4
	firstPause = 10 * time.Millisecond
)

// errStale says that what was read without a lock is not, or need not be, true any more.
var errStale = errors.New("the task was written by somebody else")

// commitError is a failure whose outcome is not known: it is never run again.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// fate is what a try came to; a Tx that says nothing is undone.
type fate int

const (
	undoneAll fate = iota
	unknown        // nobody answered the commit
	committed
)

// inTask runs fn in a transaction on a task. The transactions of this process on one task
// come one after the other.
func (s *Store) inTask(ctx context.Context, taskID string, fn func(*Tx) error) error {
	locked := func(t *Tx) error {
		if err := t.lock(taskID); err != nil {
			return err
		}
		return fn(t)
	}
	if taskID == event.System {
		return s.transact(ctx, locked)
	}
	return s.attempt(ctx, taskID, func(t *Tx, first bool) error {
		if first {
			return s.optimistic(ctx, t, func() error { return t.load(taskID) }, fn)
		}
		s.tasks.drop(taskID)
		return s.once(ctx, t, locked)
	})
}

// transact runs fn in a transaction of the database.
func (s *Store) transact(ctx context.Context, fn func(*Tx) error) error {
	return s.attempt(ctx, "", func(t *Tx, _ bool) error { return s.once(ctx, t, fn) })
}

// attempt runs a transaction, again if the database undid it, and tells the watchers after
// the commit. Only the first try need not lock the task's row.
func (s *Store) attempt(ctx context.Context, taskID string, run func(t *Tx, first bool) error) error {
	t, err := s.try(ctx, taskID, func(t *Tx) error { return run(t, true) })
	again := func(t *Tx) error { return run(t, false) }
	if errors.Is(err, errStale) && !errors.As(err, new(commitError)) {
		t, err = s.try(ctx, taskID, again)
	}
	pause := firstPause
	for try := 1; err != nil; try++ {
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
		t, err = s.try(ctx, taskID, again)
	}
	s.publish(t)
	for _, fn := range t.after {
		fn()
	}
	return nil
}

// try runs a transaction once, when those before it on the task have ended, and tells in
// the end where it came to nothing, also when it panics.
func (s *Store) try(ctx context.Context, taskID string, run func(*Tx) error) (*Tx, error) {
	t := &Tx{s: s, ctx: context.WithoutCancel(ctx), till: ctx}
	t.q = opened{t}
	defer func() {
		if t.fate != committed {
			t.undo(t.fate == unknown)
		}
	}()
	if taskID != "" {
		leave, err := s.tasks.enter(ctx, taskID)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	t.now = s.now()
	return t, run(t)
}

// once runs fn in one transaction of the database.
func (s *Store) once(ctx context.Context, t *Tx, fn func(*Tx) error) (err error) {
	if t.tx, err = s.w.begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t.locked = true
	defer t.rollback()
	if err := fn(t); err != nil {
		return s.ended(ctx, err)
	}
	return t.commit(ctx)
}

// commit writes what is left and ends the transaction of the database.
func (t *Tx) commit(ctx context.Context) error {
	if err := t.flush(); err != nil {
		return t.s.ended(ctx, fmt.Errorf("write the events: %w", err))
	}
	if err := t.s.w.commit(t.tx); err != nil {
		t.fate = unknown
		return commitError{t.s.ended(ctx, fmt.Errorf("commit: %w", err))}
	}
	t.fate = committed
	t.s.tasks.learn(t)
	return nil
}

// rollback ends a transaction of the database that was not committed.
func (t *Tx) rollback() {
	if t.tx != nil && t.fate == undoneAll {
		t.s.w.rollback(t.tx)
	}
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
	row, err := scanTask(t.bound().row(t.till, selectTask+" where id = ?"+t.s.dialect.lock, taskID))
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

// prepare makes what this transaction changed ready to be written.
func (t *Tx) prepare() error {
	if t.prepared {
		return nil
	}
	t.number()
	t.prepared = true
	for _, fn := range t.before {
		if err := fn(); err != nil {
			return err
		}
	}
	if err := t.writeCodes(); err != nil {
		return err
	}
	return t.listUnnamed()
}

// changed reports whether there is anything to write.
func (t *Tx) changed() bool {
	return t.made || t.wrote || len(t.events) > 0 || !sameTask(&t.row, &t.was) || t.pending()
}

// resumed says that something happened after retention was here: it has to look again.
func (t *Tx) resumed() bool { return t.row.gone > 0 && len(t.events) > 0 }

// flush writes the events with the task's counters in the transaction of the database.
func (t *Tx) flush() error {
	if err := t.prepare(); err != nil {
		return err
	}
	if !t.changed() {
		return nil
	}
	if t.resumed() {
		const again = "update tasks set texts_gone = 0, blobs_gone = 0, orphans_gone = 0 where id = ?"
		if _, err := t.q.exec(t.ctx, again, t.row.ID); err != nil {
			return err
		}
	}
	if err := t.settled(); err != nil {
		return err
	}
	return t.s.dialect.flush(t.ctx, t)
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
