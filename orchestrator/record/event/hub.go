package event

import (
	"sync"
	"sync/atomic"
)

// Notice tells a watcher that events First to Last of a task were committed. It
// carries the events when they were written by this process; a notice from
// another node carries none and they are read from the store.
type Notice struct {
	TaskID      string
	First, Last int64
	Events      []Event
}

// Hub fans notices out to the watchers of this process. It never waits for a
// watcher: one whose buffer is full loses the notice and finds Lagged set, and
// catches up from the log by number. Notices of one task may arrive out of order;
// numbers tell. A Hub is ready to use as its zero value and needs no stop.
type Hub struct {
	mu      sync.RWMutex
	all     map[*Subscription]struct{}
	task    map[string]map[*Subscription]struct{}
	dropped atomic.Int64

	parts parts
}

// Stats is how many watch, and how many notices full watchers have lost since the start.
func (h *Hub) Stats() (watchers int, dropped int64) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	watchers = len(h.all)
	for _, subs := range h.task {
		watchers += len(subs)
	}
	return watchers, h.dropped.Load()
}

// Subscription is one watcher.
type Subscription struct {
	C      <-chan Notice
	c      chan Notice
	hub    *Hub
	taskID string
	lagged chan struct{}
}

// Lagged has a value after a notice was dropped; receiving it resets that.
func (s *Subscription) Lagged() <-chan struct{} { return s.lagged }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.taskID == "" {
		delete(s.hub.all, s)
		return
	}
	if subs := s.hub.task[s.taskID]; subs != nil {
		delete(subs, s)
		if len(subs) == 0 {
			delete(s.hub.task, s.taskID)
		}
	}
}

// Watch subscribes to one task, or to every task when taskID is "".
func (h *Hub) Watch(taskID string, buffer int) *Subscription {
	c := make(chan Notice, buffer)
	s := &Subscription{C: c, c: c, hub: h, taskID: taskID, lagged: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if taskID == "" {
		if h.all == nil {
			h.all = map[*Subscription]struct{}{}
		}
		h.all[s] = struct{}{}
		return s
	}
	if h.task == nil {
		h.task = map[string]map[*Subscription]struct{}{}
	}
	if h.task[taskID] == nil {
		h.task[taskID] = map[*Subscription]struct{}{}
	}
	h.task[taskID][s] = struct{}{}
	return s
}

// Publish tells the watchers of the notice's task and those of all tasks. A notice
// without a task tells every watcher to look again: notices may have been missed.
func (h *Hub) Publish(n Notice) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.all {
		s.offer(n)
	}
	if n.TaskID == "" {
		for _, subs := range h.task {
			for s := range subs {
				s.offer(n)
			}
		}
		return
	}
	for s := range h.task[n.TaskID] {
		s.offer(n)
	}
}

func (s *Subscription) offer(n Notice) {
	select {
	case s.c <- n:
	default:
		s.hub.dropped.Add(1)
		select {
		case s.lagged <- struct{}{}:
		default:
		}
	}
}
