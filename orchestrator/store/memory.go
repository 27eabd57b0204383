package store

import (
	lru "container/list"
	"context"
	"sync"

	"gatehouse/orchestrator/record/event"
)

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
