package store

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/record/event"
)

const (
	partsChannel = "gatehouse_parts"
	// wantEvery is how often a node says which tasks somebody listens to there, and
	// wantedFor how long it counts for the others.
	wantEvery = 10 * time.Second
	wantedFor = 25 * time.Second
	// relayEvery is the least time between two sends of parts, and relayMost how many
	// bytes wait for one at most; further parts are dropped.
	relayEvery = 50 * time.Millisecond
	relayMost  = 64 << 10
	// relayText is how many bytes of text one part carries: JSON may make six of each.
	relayText = 1200
)

// relay shows the parts of messages that runs of this node write to the nodes where
// somebody listens to their task, and only to those. Nothing is promised: parts are
// merged, late or dropped, and the whole message is stored. A payload is the node's
// name, a line break, and a JSON array: of strings, the tasks that the node wants, or
// of parts.
type relay struct {
	node string
	hub  *event.Hub
	side *handle
	now  func() time.Time
	wake chan struct{}

	mu     sync.Mutex
	wants  map[string]struct{}  // to be said
	wanted map[string]time.Time // by other nodes: by task, until when
	parts  []event.Part         // to be sent, neighbours joined
	bytes  int
}

func newRelay(s *Store, side *handle) *relay {
	return &relay{node: strings.ReplaceAll(s.node, "\n", " "), hub: s.hub, side: side, now: s.clock, wake: make(chan struct{}, 1),
		wants: map[string]struct{}{}, wanted: map[string]time.Time{}}
}

// Want implements event.Relay.
func (r *relay) Want(taskID string) {
	r.mu.Lock()
	if len(r.wants) < maxTold {
		r.wants[taskID] = struct{}{}
	}
	r.mu.Unlock()
	wake(r.wake)
}

// Send implements event.Relay.
func (r *relay) Send(p event.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until, ok := r.wanted[p.TaskID]; !ok || r.now().After(until) {
		delete(r.wanted, p.TaskID)
		return
	}
	r.queue(p)
}

// queue adds a part, unless too much waits. The caller holds mu.
func (r *relay) queue(p event.Part) {
	if r.bytes+len(p.Text) > relayMost || len(r.parts) > relayMost/64 {
		return
	}
	for _, piece := range p.Split(relayText) {
		r.bytes += len(piece.Text)
		if n := len(r.parts); n == 0 || len(r.parts[n-1].Text)+len(piece.Text) > relayText || !r.parts[n-1].Join(piece) {
			r.parts = append(r.parts, piece)
		}
	}
	wake(r.wake)
}

// take empties r into payloads.
func (r *relay) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var items [][]byte
	var payloads []string
	size := 0
	flush := func() {
		if len(items) > 0 {
			payloads = append(payloads, r.node+"\n["+string(join(items))+"]")
		}
		items, size = nil, 0
	}
	add := func(v any) {
		b, err := json.Marshal(v)
		if err != nil || len(r.node)+len(b)+3 > maxPayload {
			return
		}
		if len(r.node)+size+len(b)+3 > maxPayload {
			flush()
		}
		items, size = append(items, b), size+len(b)+1
	}
	for task := range r.wants {
		add(task)
	}
	flush()
	for _, p := range r.parts {
		add(p)
	}
	flush()
	r.wants, r.parts, r.bytes = map[string]struct{}{}, nil, 0
	return payloads
}

func join(items [][]byte) []byte {
	var all []byte
	for i, b := range items {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, b...)
	}
	return all
}

// run sends until ctx ends. What cannot be sent is dropped.
func (r *relay) run(ctx context.Context) {
	again := time.NewTicker(wantEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			for _, task := range r.hub.Listened() {
				r.Want(task)
			}
			continue
		case <-r.wake:
		}
		for _, payload := range r.take() {
			if _, err := r.side.exec(ctx, "select pg_notify(?, ?)", partsChannel, payload); err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relayEvery):
		}
	}
}

// heard takes one payload of another node.
func (r *relay) heard(payload string) {
	node, body, ok := strings.Cut(payload, "\n")
	if !ok || node == r.node {
		return
	}
	var wants []string
	if json.Unmarshal([]byte(body), &wants) == nil {
		for _, task := range wants {
			r.want(task)
		}
		return
	}
	var parts []event.Part
	if json.Unmarshal([]byte(body), &parts) != nil {
		return
	}
	for _, p := range parts {
		r.hub.PassOn(p)
	}
}

// want notes that another node listens to a task, and sends it what was written so far.
// Parts that are passed on meanwhile wait for mu; they come behind that and may be in
// it, too, which readers see by their offsets.
func (r *relay) want(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wanted) >= maxTold {
		r.wanted = map[string]time.Time{}
	}
	r.wanted[task] = r.now().Add(wantedFor)
	for _, p := range r.hub.Drafts(task) {
		r.queue(p)
	}
}
