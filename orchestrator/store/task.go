package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/origin"
)

const selectTask = `select id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, handoffs, last_seq, last_n, last_hash, created_at, ended_at, budget, fork_of, remote_hops, paused_at, dropped_at, texts_gone + blobs_gone + orphans_gone, chat, source, version from tasks`

const insertTask = `insert into tasks (id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, created_at, budget, fork_of, remote_hops, chat, source, handoffs, last_seq, last_n, last_hash, ended_at, paused_at)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// updateTask holds only where nobody has written since the row was read. The number of the
// last event tells it too where a node of an older program writes, which counts no versions.
const updateTask = `update tasks set root_id = ?, handoffs = ?, last_seq = ?, last_n = ?, last_hash = ?, ended_at = ?, paused_at = ?,
	version = version + 1 where id = ? and version = ? and last_n = ?`

// selectHead is what tells whether a task was written.
const selectHead = "select version, last_n from tasks where id = ?"

// taskRow is a task with the counter that only the store uses.
type taskRow struct {
	orchestrator.Task
	seq     int64 // of the newest delegation
	version int64 // how often it was written
	gone    int   // passes of retention that have nothing left to do here
}

func scanTask(row scanner) (taskRow, error) {
	var t taskRow
	var created int64
	var ended, paused, dropped sql.NullInt64
	var via, limits, source string
	err := row.Scan(&t.ID, &t.RootID, &t.Agent, &t.Text, &t.Repository, &t.Ref, &t.Key, &t.Complexity, &t.RequesterID, &t.Requester, &via,
		&t.RevertOf, &t.Handoffs, &t.seq, &t.LastN, &t.LastHash, &created, &ended,
		&limits, &t.ForkOf, &t.RemoteHops, &paused, &dropped, &t.gone, &t.Chat, &source, &t.version)
	if errors.Is(err, sql.ErrNoRows) {
		return t, orchestrator.ErrNotFound
	}
	if err != nil {
		return t, err
	}
	t.Via = origin.Parse(via)
	t.CreatedAt, t.EndedAt, t.PausedAt, t.DroppedAt = fromMicros(created), fromNull(ended), fromNull(paused), fromNull(dropped)
	if t.Budget, err = decodeOr[budget.Limits](sql.NullString{String: limits, Valid: limits != ""}); err != nil {
		return t, fmt.Errorf("read the budget of %s: %w", t.ID, err)
	}
	if t.Source, err = decodeOr[agent.Source](sql.NullString{String: source, Valid: source != ""}); err != nil {
		return t, fmt.Errorf("read the source of %s: %w", t.ID, err)
	}
	return t, nil
}

// Task returns a task.
func (s *Store) Task(ctx context.Context, id string) (orchestrator.Task, error) {
	t, err := scanTask(s.r.row(ctx, selectTask+" where id = ?", id))
	return t.Task, s.explain(err)
}

// TaskByKey returns the task that the requester made with this idempotency key.
func (s *Store) TaskByKey(ctx context.Context, requesterID, key string) (orchestrator.Task, error) {
	if key == "" {
		return orchestrator.Task{}, orchestrator.ErrNotFound
	}
	t, err := scanTask(s.r.row(ctx, selectTask+" where requester_id = ? and key = ? and key <> ''", requesterID, key))
	return t.Task, s.explain(err)
}

// insertTask inserts the task, or returns the one that the requester made before with
// the same key. The unique index decides between two that come at once.
func (t *Tx) insertTask(task orchestrator.Task) (taskRow, bool, error) {
	args, err := (&taskRow{Task: task}).args()
	if err != nil {
		return taskRow{}, false, err
	}
	n, err := changed(t.q.exec(t.ctx, insertTask+" on conflict (requester_id, key) where key <> '' do nothing", args...))
	if err != nil {
		return taskRow{}, false, fmt.Errorf("insert task %s: %w", task.ID, err)
	}
	if n == 1 {
		return taskRow{Task: task}, true, nil
	}
	first, err := scanTask(t.q.row(t.ctx, selectTask+" where requester_id = ? and key = ? and key <> ''", task.RequesterID, task.Key))
	if err != nil {
		return taskRow{}, false, fmt.Errorf("read the task with key %q: %w", task.Key, err)
	}
	return first, false, nil
}

// settle makes a new task storable.
func (t *Tx) settle(task orchestrator.Task) orchestrator.Task {
	if task.CreatedAt.IsZero() {
		task.CreatedAt = t.now
	}
	task.Text, task.Key, task.Ref = clean(task.Text), clean(task.Key), clean(task.Ref)
	task.LastN, task.LastHash = 0, ""
	return task
}

// args are the arguments of insertTask.
func (task *taskRow) args() ([]any, error) {
	limits, err := encodeOr(task.Budget)
	if err != nil {
		return nil, fmt.Errorf("write the budget of %s: %w", task.ID, err)
	}
	source, err := encodeOr(task.Source)
	if err != nil {
		return nil, fmt.Errorf("write the source of %s: %w", task.ID, err)
	}
	return []any{task.ID, task.RootID, task.Agent, task.Text, task.Repository, task.Ref, task.Key,
		task.Complexity, task.RequesterID, task.Requester, task.Via.String(), task.RevertOf, micros(task.CreatedAt),
		limits.String, task.ForkOf, task.RemoteHops, task.Chat, source.String,
		task.Handoffs, task.seq, task.LastN, task.LastHash, nullMicros(task.EndedAt), nullMicros(task.PausedAt)}, nil
}

// NewTask inserts the task and runs fn in the same transaction, as orchestrator.Store wants it.
func (s *Store) NewTask(ctx context.Context, task orchestrator.Task, fn func(*Tx) error) (orchestrator.Task, bool, error) {
	var made orchestrator.Task
	var fresh bool
	run := func(t *Tx) error {
		t.was = t.row
		if err := fn(t); err != nil {
			return err
		}
		// What is returned has the counters that the commit writes.
		t.number()
		made = t.row.Task
		return nil
	}
	insert := func(t *Tx) error {
		var err error
		if t.row, fresh, err = t.insertTask(t.settle(task)); err != nil {
			return err
		}
		made, t.complete = t.row.Task, fresh
		if !fresh {
			return errNothing
		}
		return run(t)
	}
	err := s.attempt(ctx, "", func(t *Tx, first bool) error {
		if !first || task.Key != "" {
			return s.once(ctx, t, insert)
		}
		fresh = true // nothing decides but its id, which is new
		return s.optimistic(ctx, t, func() error {
			t.row = taskRow{Task: t.settle(task)}
			t.made, t.complete = true, true
			return nil
		}, run)
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	if err != nil {
		return orchestrator.Task{}, false, err
	}
	return made, fresh, nil
}

// errNothing ends a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// sameTask reports whether the columns that updateTask writes are the same.
func sameTask(a, b *taskRow) bool {
	return sameTime(a.EndedAt, b.EndedAt) && sameTime(a.PausedAt, b.PausedAt) && a.RootID == b.RootID && a.Handoffs == b.Handoffs && a.seq == b.seq && a.LastN == b.LastN
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// taskArgs are the arguments of updateTask.
func (t *Tx) taskArgs() []any {
	return []any{t.row.RootID, t.row.Handoffs, t.row.seq, t.row.LastN, t.row.LastHash, nullMicros(t.row.EndedAt), nullMicros(t.row.PausedAt),
		t.row.ID, t.was.version, t.was.LastN}
}
