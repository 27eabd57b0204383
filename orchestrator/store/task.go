package store

import (
	lru "container/list"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

const selectTask = `select id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, handoffs, last_seq, last_n, last_hash, created_at, ended_at, budget, fork_of, remote_hops, paused_at, dropped_at, texts_gone + blobs_gone + orphans_gone, chat, thread, source, attachments, version from tasks`

const insertTask = `insert into tasks (id, root_id, agent, text, repository, ref, key, complexity, requester_id, requester, via,
	revert_of, created_at, budget, fork_of, remote_hops, chat, thread, source, attachments, handoffs, last_seq, last_n, last_hash, ended_at, paused_at)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// updateTask holds only where nobody has written since the row was read: the version counts
// the writes, those of older programs too, for which a trigger of PostgreSQL counts. The last
// hash tells where the whole database is another one, such as a backup.
const updateTask = `update tasks set root_id = ?, handoffs = ?, last_seq = ?, last_n = ?, last_hash = ?, ended_at = ?, paused_at = ?,
	version = version + 1 where id = ? and version = ? and last_hash = ?`

// selectHead is what tells whether a task was written.
const selectHead = "select version, last_hash from tasks where id = ?"

// countVersion has whoever has read the task without its lock read it again.
const countVersion = "update tasks set version = version + 1 where id = ?"

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
	var via, limits, source, attached string
	err := row.Scan(&t.ID, &t.RootID, &t.Agent, &t.Text, &t.Repository, &t.Ref, &t.Key, &t.Complexity, &t.RequesterID, &t.Requester, &via,
		&t.RevertOf, &t.Handoffs, &t.seq, &t.LastN, &t.LastHash, &created, &ended,
		&limits, &t.ForkOf, &t.RemoteHops, &paused, &dropped, &t.gone, &t.Chat, &t.Thread, &source, &attached, &t.version)
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
	if attached != "" {
		if err := json.Unmarshal([]byte(attached), &t.Attachments); err != nil {
			return t, fmt.Errorf("read the attachments of %s: %w", t.ID, err)
		}
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
	attached := ""
	if len(task.Attachments) > 0 {
		if attached, err = encode(task.Attachments); err != nil {
			return nil, fmt.Errorf("write the attachments of %s: %w", task.ID, err)
		}
	}
	return []any{task.ID, task.RootID, task.Agent, task.Text, task.Repository, task.Ref, task.Key,
		task.Complexity, task.RequesterID, task.Requester, task.Via.String(), task.RevertOf, micros(task.CreatedAt),
		limits.String, task.ForkOf, task.RemoteHops, task.Chat, task.Thread, source.String, attached,
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
		t.row.ID, t.was.version, t.was.LastHash}
}

// What is remembered at most: tasks, delegations of one task, and bytes of their texts.
const (
	maxTasks = 256
	maxTree  = 16
	maxBytes = 32 << 10
)

// tasks lets the transactions of this process on one task come one after the other, and
// remembers live tasks as the last of them has left them. What it says may be old: only a
// write that compares the task's version makes it true. Rows whose lease another node has
// are not remembered, because leases are renewed without a version.
type tasks struct {
	node string

	mu     sync.Mutex
	queues map[string]*queue
	byID   map[string]*lru.Element // of *remembered
	newest lru.List                // the one that was asked for last is in front
}

// queue has those who wait for a task; the turn goes from one to the next.
type queue struct {
	turn chan struct{}
	n    int
}

// remembered is never changed: what is newer takes its place.
type remembered struct {
	task     taskRow
	rows     []stored
	complete bool // rows has the whole tree, in its order
}

// enter waits for the turn at a task; leave gives it on.
func (k *tasks) enter(ctx context.Context, id string) (leave func(), err error) {
	k.mu.Lock()
	if k.queues == nil {
		k.queues, k.byID = map[string]*queue{}, map[string]*lru.Element{}
	}
	q := k.queues[id]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		q.turn <- struct{}{}
		k.queues[id] = q
	}
	q.n++
	k.mu.Unlock()
	quit := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if q.n--; q.n == 0 {
			delete(k.queues, id)
		}
	}
	select {
	case <-q.turn:
		return func() { q.turn <- struct{}{}; quit() }, nil
	case <-ctx.Done():
		quit()
		return nil, ctx.Err()
	}
}

// recall puts what is remembered of a task into t.
func (k *tasks) recall(t *Tx, id string) bool {
	k.mu.Lock()
	e := k.byID[id]
	if e == nil {
		k.mu.Unlock()
		return false
	}
	k.newest.MoveToFront(e)
	known := e.Value.(*remembered)
	k.mu.Unlock()
	t.row, t.complete = known.task, known.complete
	// The pointers are the transaction's own.
	t.row.EndedAt, t.row.PausedAt = fromNull(nullMicros(known.task.EndedAt)), fromNull(nullMicros(known.task.PausedAt))
	t.was = t.row
	t.was.EndedAt, t.was.PausedAt = known.task.EndedAt, known.task.PausedAt
	for i := range known.rows {
		t.leased = t.leased || known.rows[i].plain.Holder != ""
		t.add(known.rows[i])
	}
	return true
}

// learn remembers what t has committed.
func (k *tasks) learn(t *Tx) {
	if t.row.ID == "" || t.row.ID == event.System {
		return
	}
	known := &remembered{task: t.row, complete: t.complete}
	if t.changed() && !t.made {
		known.task.version++
	}
	known.task.EndedAt, known.task.PausedAt = fromNull(nullMicros(t.row.EndedAt)), fromNull(nullMicros(t.row.PausedAt))
	size := len(t.row.Text)
	for _, l := range t.order {
		p := &l.row.plain
		if p.TaskID != t.row.ID || p.Holder != "" && p.Holder != k.node {
			known.complete = false
			continue
		}
		known.rows = append(known.rows, l.row)
		size += len(p.Text) + len(l.row.chain) + len(l.row.work) + len(l.row.result.String) + len(l.row.failure.String)
	}
	if t.row.EndedAt != nil || t.resumed() || len(known.rows) > maxTree || size > maxBytes {
		k.drop(t.row.ID)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.byID[t.row.ID]; e != nil {
		if e.Value.(*remembered).task.version > known.task.version {
			return
		}
		e.Value = known
		k.newest.MoveToFront(e)
		return
	}
	if k.byID == nil {
		k.queues, k.byID = map[string]*queue{}, map[string]*lru.Element{}
	}
	k.byID[t.row.ID] = k.newest.PushFront(known)
	if k.newest.Len() > maxTasks {
		delete(k.byID, k.newest.Remove(k.newest.Back()).(*remembered).task.ID)
	}
}

// drop forgets a task that somebody else may have written.
func (k *tasks) drop(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.byID[id]; e != nil {
		k.newest.Remove(e)
		delete(k.byID, id)
	}
}

// clear forgets everything.
func (k *tasks) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.byID)
	k.newest.Init()
}
