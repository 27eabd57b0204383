package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator"

	"github.com/lib/pq"
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
	case t.locked, t.made:
		return true
	}
	var version, last int64
	err := t.read().row(t.ctx, selectHead, t.row.ID).Scan(&version, &last)
	return err == nil && version == t.was.version && last == t.was.LastN
}

// apply writes what t has to write, where its task is as it was read.
func (s *Store) apply(ctx context.Context, t *Tx) error {
	err := s.dialect.apply(t.ctx, t)
	kind := s.dialect.classify(err)
	switch {
	case err == nil:
		t.fate = committed
		s.tasks.learn(t)
		return nil
	case errors.As(err, new(commitError)):
		t.fate = unknown
		return err
	case kind != away && kind != conflict && !errors.Is(err, errStale) && !errors.Is(err, orchestrator.ErrLost):
		return s.ended(ctx, err)
	}
	// A connection that broke, or a driver that tried again, may have written it. Else what
	// was in the way shows under the lock.
	s.tasks.drop(t.row.ID)
	landed, lost := s.landed(t)
	if lost != nil {
		t.fate = unknown
		return commitError{s.ended(ctx, errors.Join(err, lost))}
	}
	if landed {
		t.fate = committed
		return nil
	}
	return errStale
}

// landed reports whether the write of t is committed: its last event, whose id nobody else
// has, is in the log then, whatever came after it. A statement that still waits for the
// task's row is waited for by the lock.
func (s *Store) landed(t *Tx) (bool, error) {
	if s.told == nil {
		return false, nil // one file, whose commits answer
	}
	tx, err := s.w.begin(t.ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	b := bound{s.w, tx}
	var version, last int64
	err = b.row(t.ctx, selectHead+s.dialect.lock, t.row.ID).Scan(&version, &last)
	if errors.Is(err, sql.ErrNoRows) || err == nil && last < t.row.LastN {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var hash string
	err = b.row(t.ctx, "select hash from events where task_id = ? and n = ?", t.row.ID, t.row.LastN).Scan(&hash)
	return err == nil && hash == t.row.LastHash, err
}

// load reads the task: from memory, else from the database, without a lock.
func (t *Tx) load(taskID string) error {
	if t.s.tasks.recall(t, taskID) {
		return nil
	}
	row, err := scanTask(t.read().row(t.ctx, selectTask+" where id = ?", taskID))
	t.row, t.was = row, row
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

// shape is what a statement of applyPostgres is made for.
type shape struct {
	made                   bool
	inserts, moves, events int
}

// text is one statement that writes a task's row, where it is as it was read, and with it
// everything else. Without the task's row there is no task id: an insert then breaks, a
// move finds nothing, and the last line divides by zero, so that nothing is written. That
// also makes the task's row the first that is locked.
func (s shape) text() string {
	var b strings.Builder
	if s.made {
		b.WriteString("with t as (" + insertTask + " returning id)")
	} else {
		b.WriteString("with t as (" + updateTask + " returning id)")
	}
	const task = "(select id from t)"
	for i := range s.inserts {
		insert := strings.Replace(insertDelegation, "values (?", "values ("+task, 1)
		fmt.Fprintf(&b, ", i%d as (%s)", i, insert)
	}
	for i := range s.moves {
		move := strings.Replace(moveDelegation, "task_id = ?", "task_id = "+task, 1)
		fmt.Fprintf(&b, ", u%d as (%s returning 1)", i, move)
	}
	if s.events > 0 {
		b.WriteString(", e as (" + strings.ReplaceAll(insertEvents(s.events), "(?", "("+task) + ")" +
			", q as (insert into event_queue (task_id, first_n, last_n) values (" + task + ", ?, ?))")
	}
	b.WriteString(" select 1 / (select count(*) from t)")
	for i := range s.moves {
		fmt.Fprintf(&b, ", 1 / (select count(*) from u%d)", i)
	}
	return b.String()
}

// writeSet is what t has to write as one statement.
func (t *Tx) writeSet() (shape, []any, error) {
	s := shape{made: t.made, events: len(t.events)}
	args := t.taskArgs()
	if t.made {
		var err error
		if args, err = t.row.args(); err != nil {
			return s, nil, err
		}
	}
	for _, l := range t.order {
		if l.fresh {
			s.inserts++
			args = append(args, l.insertArgs()...)
		}
	}
	for _, l := range t.order {
		if l.dirty && !l.fresh {
			s.moves++
			args = append(args, l.moveArgs()...)
		}
	}
	if s.events == 0 {
		return s, args, nil
	}
	for i := range t.events {
		args = append(args, eventArgs(&t.events[i])[1:]...)
	}
	return s, append(args, t.events[0].N, t.row.LastN), nil
}

// applyPostgres writes everything in one statement, which is a transaction of its own: one
// way to the server and back.
func applyPostgres(ctx context.Context, t *Tx) error {
	s, args, err := t.writeSet()
	if err != nil {
		return err
	}
	stmt, err := t.s.w.shaped(ctx, s)
	if err == nil {
		_, err = t.s.w.count(stmt.ExecContext(ctx, args...))
	}
	if err == nil {
		t.s.w.rows.Add(int64(s.inserts + s.moves + s.events + 1)) // and the one that count saw
	}
	if missed(err) {
		return errStale
	}
	return err
}

// missed reports whether a statement found the task, or one of the rows, changed.
func missed(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "22012" || e.Code == "23502")
}

// flushPostgres writes what is left in the transaction of the database. Many events go
// before in statements of their own.
func flushPostgres(ctx context.Context, t *Tx) error {
	b := t.bound()
	if len(t.events) == 0 {
		return t.count(ctx, b)
	}
	rest := t.events
	for ; len(rest) > batch; rest = rest[batch:] {
		if _, err := b.exec(ctx, insertEvents(batch), manyArgs(rest[:batch])...); err != nil {
			return err
		}
	}
	args := append(manyArgs(rest), t.row.ID, t.events[0].N, t.row.LastN)
	n, err := changed(b.exec(ctx, flushEvents(len(rest)), append(args, t.taskArgs()...)...))
	if err == nil && n == 0 {
		err = errStale
	}
	return err
}

// flushEvents is one statement for k events, the row that tells the sequencer of
// them, and the task's counters: one way to the server and back.
func flushEvents(k int) string {
	return "with e as (" + insertEvents(k) + ")," +
		" q as (insert into event_queue (task_id, first_n, last_n) values (?, ?, ?)) " + updateTask
}

// count writes the task's counters, where nobody has written it since it was read.
func (t *Tx) count(ctx context.Context, b bound) error {
	n, err := changed(b.exec(ctx, updateTask, t.taskArgs()...))
	if err == nil && n == 0 {
		err = errStale
	}
	return err
}

// shaped is the prepared statement of a shape, which is made when it is first asked for.
// Nobody who holds a connection asks: preparing needs one.
func (h *handle) shaped(ctx context.Context, s shape) (*sql.Stmt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stmt := h.shapes[s]; stmt != nil {
		return stmt, nil
	}
	stmt, err := h.db.PrepareContext(ctx, h.rebind(s.text()))
	if err != nil {
		return nil, err
	}
	if h.shapes == nil {
		h.shapes = map[shape]*sql.Stmt{}
	}
	h.shapes[s] = stmt
	return stmt, nil
}
