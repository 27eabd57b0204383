package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/origin"
)

const selectTask = `select id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, handoffs, last_seq, last_n, last_hash, created_at, ended_at, budget, fork_of, remote_hops, paused_at, dropped_at, texts_gone + blobs_gone + orphans_gone, chat, source from tasks`

const insertTask = `insert into tasks (id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, handoffs, last_seq, last_n, last_hash, created_at, ended_at, budget, fork_of, remote_hops, chat, source)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', ?, ?, ?, ?, ?, ?, ?)
	on conflict (requester_id, key) where key <> '' do nothing`

const updateTask = `update tasks set root_id = ?, handoffs = ?, last_seq = ?, last_n = ?, last_hash = ?, ended_at = ?, paused_at = ? where id = ?`

// taskRow is a task with the counter that only the store uses.
type taskRow struct {
	orchestrator.Task
	seq  int64 // of the newest delegation
	gone int   // passes of retention that have nothing left to do here
}

func scanTask(row scanner) (taskRow, error) {
	var t taskRow
	var created int64
	var ended, paused, dropped sql.NullInt64
	var via, limits, source string
	err := row.Scan(&t.ID, &t.RootID, &t.Agent, &t.Text, &t.Repository, &t.Ref, &t.Key, &t.Complexity, &t.RequesterID, &t.Requester, &via,
		&t.RevertOf, &t.Handoffs, &t.seq, &t.LastN, &t.LastHash, &created, &ended,
		&limits, &t.ForkOf, &t.RemoteHops, &paused, &dropped, &t.gone, &t.Chat, &source)
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
	if task.CreatedAt.IsZero() {
		task.CreatedAt = t.now
	}
	task.Text, task.Key, task.Ref = clean(task.Text), clean(task.Key), clean(task.Ref)
	task.LastN, task.LastHash = 0, ""
	limits, err := encodeOr(task.Budget)
	if err != nil {
		return taskRow{}, false, fmt.Errorf("write the budget of %s: %w", task.ID, err)
	}
	source, err := encodeOr(task.Source)
	if err != nil {
		return taskRow{}, false, fmt.Errorf("write the source of %s: %w", task.ID, err)
	}
	n, err := changed(t.q.exec(t.ctx, insertTask, task.ID, task.RootID, task.Agent, task.Text, task.Repository, task.Ref, task.Key,
		task.Complexity, task.RequesterID, task.Requester, task.Via.String(), task.RevertOf, task.Handoffs, micros(task.CreatedAt), nullMicros(task.EndedAt),
		limits.String, task.ForkOf, task.RemoteHops, task.Chat, source.String))
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

// NewTask inserts the task and runs fn in the same transaction, as orchestrator.Store wants it.
func (s *Store) NewTask(ctx context.Context, task orchestrator.Task, fn func(*Tx) error) (orchestrator.Task, bool, error) {
	var made orchestrator.Task
	var fresh bool
	err := s.transact(ctx, func(t *Tx) error {
		var err error
		if t.row, fresh, err = t.insertTask(task); err != nil {
			return err
		}
		made = t.row.Task
		if !fresh {
			return errNothing
		}
		t.was = t.row
		if err := fn(t); err != nil {
			return err
		}
		// What is returned has the counters that the commit writes.
		t.number()
		made = t.row.Task
		return nil
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
